import { join } from 'node:path'
import { expect, it } from 'vitest'
import { summaryPageIn } from '../support/summary-page.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

const EXTRACT =
  'domains: [acme.example], windows: { from: 2024-01-01, until: 2024-01-04, every: 1d, per_chain: 1 }'

it('the page names a failed day and why, and no longer once that is exported', async () => {
  const items = Array.from({ length: 30 }, (_, i) => itemAt(i, `2024-01-0${1 + (i % 3)}T10:00:00Z`))
  const service = await serviceOf(items, 100)
  service.fault = ({ json }, response) => {
    const { filters } = json as { filters: { imported_at: { gte: string } } }
    if (!filters.imported_at.gte.startsWith('2024-01-02')) return false
    response.writeHead(422, { 'content-type': 'application/json' }).end('{}')
    return true
  }
  const world = worldAt(service.url, EXTRACT)
  const page = () => summaryPageIn(join(world.folder, 'out'))

  const { status, causes } = await world.run()
  expect(status).toBe('failed')
  const failed = await page()
  expect(failed.heading).toBe('INCOMPLETE: 1 of 3 partitions failed')
  expect(failed.heat['domain.acme.example']).toEqual(['10', 'failed', '10', '20'])
  expect(failed.html).toContain('<li class="part"')
  // As the terminal has it.
  const [{ what, next } = { what: '', next: '' }] = causes
  expect(failed.failures).toEqual([`domain.acme.example, 2024-01-02: ${what}. ${next}`])
  expect(failed.html).toContain(`<dd>${new URL(service.url).host}</dd>`)

  service.fault = () => false
  expect((await world.run()).status).toBe('complete')
  expect(await page()).toMatchObject({ heading: 'Complete: all 3 partitions', failures: [] })
})
