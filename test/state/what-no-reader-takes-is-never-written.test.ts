import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { JournalEntry } from '../../src/core/index.ts'
import { CHECKPOINT_PATH, openCheckpoint, readCheckpoint, rewriteCheckpoint } from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { chainOfAll, HEADER, page, seal } from './lines.ts'

const RUN = 'r'
const begun: JournalEntry = { kind: 'run', run: RUN, started_at: '2024-01-01T00:00:00.000Z', version: '1' }
const ended = (searches_remaining: number): JournalEntry => ({
  kind: 'end',
  run: RUN,
  finished_at: '2024-01-01T00:00:01.000Z',
  status: 'complete',
  requests: 1,
  retries: 0,
  searches_remaining,
})

test.each<[string, JournalEntry, field: string]>([
  ['a figure beyond 2^53', ended(2 ** 64), 'searches_remaining'],
  ['a negative one', ended(-1), 'searches_remaining'],
  ['no number', ended(Number.NaN), 'searches_remaining'],
  [
    'a fraction, deep in a page',
    page({ logged: [{ shard: 0, generation: 1, end: 0.5, rows: 1 }] }),
    'logged.0.end',
  ],
])('%s is refused at the door, and the journal goes on', async (_, fact, field) => {
  const { store, root } = temporaryStore()
  const checkpoint = await openCheckpoint(store, HEADER, () => {})
  await checkpoint.append([begun, chainOfAll(0, 'q')])
  const before = readFileSync(join(root, CHECKPOINT_PATH))
  for (const facts of [[fact], [seal(0, 'credentials/part-00000.csv'), fact]]) {
    await expect(checkpoint.append(facts)).rejects.toEqual(anError('data', CHECKPOINT_PATH))
    await expect(checkpoint.append(facts)).rejects.toThrow(field)
  }
  expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(before)
  expect(checkpoint.state.shards.length).toBe(0)
  await checkpoint.append([ended(5)])
  await checkpoint.close()
  expect((await readCheckpoint(store))?.searchesRemaining).toBe(5)
})

test('a rewrite that a reader would refuse does not replace the journal', async () => {
  const { store, root } = temporaryStore()
  const checkpoint = await openCheckpoint(store, HEADER, () => {})
  await checkpoint.append([begun, ended(5)])
  await checkpoint.close()
  const before = readFileSync(join(root, CHECKPOINT_PATH))
  const state = { ...checkpoint.state, runs: [{ ...checkpoint.state.runs[0]!, requests: 2 ** 60 }] }
  await expect(rewriteCheckpoint(store, state)).rejects.toEqual(anError('data', CHECKPOINT_PATH))
  expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(before)
})
