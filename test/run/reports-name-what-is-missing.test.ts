import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { SummaryPageData } from '../../src/report/index.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

const EXTRACT =
  'domains: [acme.example], windows: { from: 2024-01-01, until: 2024-01-04, every: 1d, per_chain: 1 }'

it('the report names a failed day, and no longer once that is exported', async () => {
  const items = Array.from({ length: 30 }, (_, i) => itemAt(i, `2024-01-0${1 + (i % 3)}T10:00:00Z`))
  const service = await serviceOf(items, 100)
  service.fault = ({ json }, response) => {
    const { filters } = json as { filters: { imported_at: { gte: string } } }
    if (!filters.imported_at.gte.startsWith('2024-01-02')) return false
    response.writeHead(422, { 'content-type': 'application/json' }).end('{}')
    return true
  }
  const world = await worldAt(service.url, EXTRACT)
  const page = () => readFile(join(world.folder, 'out/_report.html'), 'utf8')
  const data = async (): Promise<SummaryPageData> =>
    JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(await page())![1]!)

  expect((await world.run()).status).toBe('failed')
  const failed = await data()
  expect(failed.verdict).toEqual({
    complete: false,
    partitions: { total: 3, done: 2, failed: 1, partial: 0, pending: 0 },
    span: { from: '2024-01-01T00:00:00Z', until: '2024-01-04T00:00:00Z' },
    left_out: [],
  })
  expect(failed.rows.heat!.rows[0]!.cells.map((cell) => cell!.state)).toEqual(['done', 'failed', 'done'])
  expect(failed.rows.timeline.incomplete).toEqual(['2024-01-02'])
  expect(await page()).toContain('<title>trial: INCOMPLETE: 1 of 3 partitions failed; the figures')
  expect(failed.provenance).toMatchObject({ host: new URL(service.url).host, signed: false, pruned: null })

  service.fault = () => false
  expect((await world.run()).status).toBe('complete')
  expect((await data()).verdict).toMatchObject({ complete: true, partitions: { total: 3, done: 3 } })
  expect((await data()).rows.timeline.incomplete).toEqual([])
  expect(await page()).toContain('<title>trial: Complete: all 3 partitions, 2024-01-01 to 2024-01-03</title>')
})

it('queries that began in the last run precede the others', async () => {
  const items = Array.from({ length: 30 }, (_, i) => itemAt(i, `2024-01-0${1 + (i % 3)}T10:00:00Z`))
  const service = await serviceOf(items, 100)
  const world = await worldAt(service.url, EXTRACT)
  const queries = async () => {
    const page = await readFile(join(world.folder, 'out/_report.html'), 'utf8')
    const data: SummaryPageData = JSON.parse(
      /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)![1]!,
    )
    return data.rows.heat!.rows.map(({ query, isNew = false }) => [query, isNew])
  }
  expect((await world.run()).status).toBe('complete')
  expect(await queries()).toEqual([['domain.acme.example', false]])
  const more = EXTRACT.replace('[acme', '[zoo.example, acme')
  expect((await world.run('{}', more)).status).toBe('complete')
  expect(await queries()).toEqual([
    ['domain.zoo.example', true],
    ['domain.acme.example', false],
  ])
})
