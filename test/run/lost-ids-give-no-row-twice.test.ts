import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { itemAt, serviceOf, worldAt } from './world.ts'

const extractOf = (more: string): string =>
  `domains: [acme.com], concurrency: 1, page_size: 2, windows: { from: 2024-01-01, until: 2024-01-03, every: 1d }, ${more}`

// Pages of two; the instant of the last committed row began two pages before.
test.each(['asc', 'desc'])('one instant spans several pages, order %s', async (order) => {
  const seconds = [1, 2, 2, 2, 2, 2, 2, 3]
  const items = seconds.map((second, id) => itemAt(id, `2024-01-01T00:00:0${second}.000000+00:00`))
  const service = await serviceOf(order === 'asc' ? items : items.toReversed(), 2)
  const { run, rows, folder } = await worldAt(service.url, extractOf(`order: ${order}, max_requests: 3`))
  await expect(run()).resolves.toMatchObject({ status: 'budget', rows: 6 })
  await spoilIds(join(folder, 'out/_state'))

  await expect(run(undefined, extractOf(`order: ${order}`))).resolves.toMatchObject({ status: 'complete' })
  expect((await rows()).sort((a, b) => a - b)).toEqual(items.map((_, id) => id))
})

/** Flips a bit in the ids of the chain, wherever they are in the log. */
async function spoilIds(state: string): Promise<void> {
  const lines = (await readFile(join(state, 'checkpoint.jsonl'), 'utf8')).trim().split('\n')
  const chain = lines.map((line) => JSON.parse(line)).find(({ kind }) => kind === 'chain')
  const ids: readonly [sequence: number, offset: number][] = chain.state.ids
  expect(ids.length).toBeGreaterThan(0)
  for (const [sequence, offset] of ids) {
    const path = join(state, 'log', String(sequence).padStart(16, '0'))
    const bytes = await readFile(path)
    bytes[offset]! ^= 1
    await writeFile(path, bytes)
  }
}
