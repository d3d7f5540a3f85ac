import { describe, expect, test, vi } from 'vitest'
import type { Fault } from '../../src/sandbox/index.ts'
import { startSandbox } from '../../src/sandbox/index.ts'
import { credential, type Item, startService } from './hostile-service.ts'
import { expectedRows, exportedRows, pipelineYaml, SMALL, summaryOf, world } from './network-world.ts'
import { shardPaths } from './support.ts'

// Each test is many processes, on machines that may be busy.
vi.setConfig({ testTimeout: 300_000 })

// The fourth and later requests are in the middle of both chains.
const HALF_WAY = ['--max-requests', '4']

describe.concurrent.each(['asc', 'desc'])('with order %s, when a cursor is refused', (order) => {
  test('in the next run, the export goes on from the last row', async () => {
    const { sandbox, workspace, run, close } = await world(
      SMALL,
      pipelineYaml({ extract: `order: ${order}` }),
    )
    const renewed = await startSandbox({ ...SMALL, cursorKey: 'another key', token: sandbox.token })
    try {
      const stopped = await run({}, HALF_WAY)
      expect(stopped.code, stopped.stderr).toBe(4)
      const ended = await run({ SPILLWAY_BASE_URL: renewed.baseUrl })
      expect(ended.code, ended.stderr).toBe(0)
      expect(ended.stderr).toContain('refuses the saved cursor')
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
      // The rows that were exported already are not asked for again, but for those of the very last instant.
      const again = renewed.requests.reduce((sum, { items }) => sum + items, 0)
      expect(again).toBeLessThanOrEqual(expectedRows(sandbox).length - summaryOf(stopped).rows + 20)
    } finally {
      await renewed.close()
      await close()
    }
  })

  test('in the middle of a run, the export goes on from the last row', async () => {
    const refusal: Fault = { kind: 'status', status: 400, code: 'INVALID_CURSOR', requests: [5] }
    const { sandbox, workspace, run, close } = await world(
      { ...SMALL, faults: [refusal] },
      pipelineYaml({ extract: `order: ${order}` }),
    )
    try {
      const ended = await run()
      expect(ended.code, ended.stderr).toBe(0)
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    } finally {
      await close()
    }
  })

  test('after pages that were not in order, it does not go on from a place that would leave rows out', async () => {
    // Each page is in order by itself; the second one goes back. That the third is in order mends nothing.
    const seconds = order === 'asc' ? [3, 4, 1, 2, 5, 6] : [4, 3, 6, 5, 2, 1]
    const items = seconds.map((second, id) =>
      credential(id, { imported_at: new Date(Date.UTC(2024, 0, 1) + second * 1000).toISOString() }),
    )
    const service = await startService((asked) => {
      const start = Number(asked.body.from ?? 0)
      if (start === 6) asked.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else asked.json({ items: items.slice(start, start + 2), next: String(start + 2) })
    })
    const { workspace, run, close } = await world(
      SMALL,
      pipelineYaml({ domains: ['acme.example'], pageSize: 2, extract: `order: ${order}` }),
    )
    try {
      const ended = await run({ SPILLWAY_BASE_URL: service.baseUrl })
      expect(ended.code, ended.stderr).toBe(1)
      expect(ended.stderr).toContain('there is no safe place to go on')
      expect(service.asked).toHaveLength(4)
      // What is committed stays.
      expect(summaryOf(ended).rows).toBe(6)
      expect(await shardPaths(workspace.output)).toEqual([])
    } finally {
      await service.close()
      await close()
    }
  })

  test.each([
    ['many rows share the instant at the page boundary', (id: number) => Math.floor(id / 7)],
    ['every row shares one instant', () => 3],
    ['every row has an instant of its own', (id: number) => id],
  ])('and %s, none is lost and none comes twice', async (_name, second) => {
    const items = Array.from({ length: 23 }, (_, id) =>
      credential(id, { imported_at: new Date(Date.UTC(2024, 0, 1) + second(id) * 1000).toISOString() }),
    )
    // The fourth request is refused: so is the cursor that the run has saved three pages in.
    const service = await startService((asked) => {
      const { from = null } = asked.body
      if (asked.number === 4) asked.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else asked.json(page(items, asked.body, from))
    })
    const { workspace, run, close } = await world(
      SMALL,
      pipelineYaml({ domains: ['acme.example'], pageSize: 5, extract: `order: ${order}` }),
    )
    try {
      const ended = await run({ SPILLWAY_BASE_URL: service.baseUrl })
      expect(ended.code, ended.stderr).toBe(0)
      const ids = (await exportedRows(workspace.output)).map((row) => Number(row.split(' ')[1]))
      expect(ids.sort((a, b) => a - b)).toEqual(items.map(({ id }) => id))
    } finally {
      await service.close()
      await close()
    }
  })
})

test('when every cursor is refused, the run ends and says so', async () => {
  const { sandbox, workspace, run, close } = await world(
    { ...SMALL, faults: [{ kind: 'status', status: 400, when: ({ body }) => hasCursor(body) }] },
    pipelineYaml(),
  )
  try {
    const ended = await run()
    expect(ended.code, ended.stderr).toBe(1)
    expect(ended.stderr).toContain('cursor')
    expect(sandbox.requests.length).toBeLessThan(20)
    expect(new Set(await exportedRows(workspace.output)).size).toBe(
      (await exportedRows(workspace.output)).length,
    )
  } finally {
    await close()
  }
})

function hasCursor(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'from' in body && body.from !== null
}

type Asking = {
  readonly size: number
  readonly order: string
  readonly filters?: { readonly imported_at?: { readonly gte?: string; readonly lte?: string } }
}

/** A page of the items that the filters let pass; the cursor is a place in those. */
function page(items: readonly Item[], { size, order, filters }: Asking, from: string | null) {
  const { gte = '0', lte = '9' } = filters?.imported_at ?? {}
  const at = (item: Item): string => String(item.imported_at)
  const found = items.filter((item) => at(item) >= iso(gte) && at(item) <= iso(lte))
  if (order === 'desc') found.reverse()
  const start = Number(from?.split('~').at(-1) ?? 0)
  const end = start + size
  // Cursors of another range are other cursors.
  return { items: found.slice(start, end), next: end < found.length ? `${gte}~${lte}~${end}` : null }
}

/** With milliseconds, as the items have them, so that the texts can be compared. */
function iso(text: string): string {
  return text.length > 1 ? new Date(text).toISOString() : text
}
