import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { some } from '../support/thorough.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

type Damage = (path: string, bytes: Buffer, offset: number) => Promise<void>

const DAMAGES: readonly (readonly [string, Damage])[] = [
  [
    'flipped',
    async (path, bytes, offset) => {
      bytes[offset]! ^= 1
      await writeFile(path, bytes)
    },
  ],
  ['cut', (path, bytes, offset) => writeFile(path, bytes.subarray(0, offset + 4))],
  ['gone', (path) => rm(path, { force: true })],
]

const extractOf = (more: string): string =>
  `domains: [acme.com], concurrency: 1, page_size: 2, windows: { from: 2024-01-01, until: 2024-01-03, every: 1d }, ${more}`

// Each page fills its shards, so that the log holds ids alone.
const LOAD = { load: 'format: csv, path: out, shard_rows: 1' }

const CASES = ['asc', 'desc'].flatMap((order) =>
  DAMAGES.map(([name, damage]) => [name, order, damage] as const),
)

// Pages of two; the instant of the last committed row began two pages before.
test.each(some(CASES, 2))(
  'one instant spans several pages, and ids are %s, order %s',
  async (_, order, damage) => {
    const seconds = [1, 2, 2, 2, 2, 2, 2, 3]
    const items = seconds.map((second, id) => itemAt(id, `2024-01-01T00:00:0${second}.000000+00:00`))
    const service = await serviceOf(order === 'asc' ? items : items.toReversed(), 2)
    const extract = extractOf(`order: ${order}, max_requests: 3`)
    const { run, ids, folder } = worldAt(service.url, extract, LOAD)
    await expect(run()).resolves.toMatchObject({ status: 'budget', rows: 6 })
    await spoilIds(join(folder, 'out/_state'), damage)

    const warnings: string[] = []
    const onLog = (_: string, text: string) => void warnings.push(text)
    const again = run(undefined, extractOf(`order: ${order}`), { onLog })
    await expect(again).resolves.toMatchObject({ status: 'complete' })
    expect(ids()).toEqual(items.map((_, id) => id))
    expect(warnings.join()).toContain('ids in the log were damaged')
  },
)

test('a log without a checkpoint and a manifest is damage', async () => {
  const items = Array.from({ length: 8 }, (_, id) => itemAt(id, `2024-01-01T00:00:0${id}.000000+00:00`))
  const service = await serviceOf(items, 2)
  const { run, ids, folder } = worldAt(service.url, extractOf('max_requests: 3'))
  await expect(run()).resolves.toMatchObject({ status: 'budget', rows: 6 })
  for (const name of ['_state/checkpoint.jsonl', '_manifest.json', '_report.html'])
    await rm(join(folder, 'out', name))
  const what = expect.stringContaining('a log but no')
  await expect(run()).rejects.toMatchObject({ kind: 'damaged', what })
  expect(ids()).toEqual([])
  expect(service.received).toHaveLength(3)
})

/** Damages the ids of the chain, wherever they are in the log. */
async function spoilIds(state: string, damage: Damage): Promise<void> {
  const lines = (await readFile(join(state, 'checkpoint.jsonl'), 'utf8')).trim().split('\n')
  const entries = lines.flatMap((line) => JSON.parse(line).parts[0].entries)
  const chain = entries.find(({ kind }) => kind === 'chain')
  const ids: readonly [sequence: number, offset: number][] = chain.state.ids
  expect(ids.length).toBeGreaterThan(0)
  for (const [sequence, offset] of ids) {
    const path = join(state, 'log', String(sequence).padStart(16, '0'))
    const bytes = await readFile(path).catch(() => Buffer.alloc(0))
    await damage(path, bytes, offset)
  }
}
