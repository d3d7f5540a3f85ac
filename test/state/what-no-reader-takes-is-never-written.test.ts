import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it, test } from 'vitest'
import { PackedShardList, type SealedShard } from '../../src/state/checkpoint/packed-collections.ts'
import {
  CHECKPOINT_PATH,
  type JournalEntry,
  LOG_FOLDER,
  readCheckpoint,
  saveCheckpoint,
} from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { begun, chainOfAll, commitLines, ended, HEADER, openLog, own, page, seal } from './lines.ts'

const left = (searches_remaining: number): JournalEntry => ended('r', { searches_remaining })

test.each<[string, JournalEntry, field: string]>([
  ['a figure beyond 2^53', left(2 ** 64), 'searches_remaining'],
  ['a negative one', left(-1), 'searches_remaining'],
  ['no number', left(Number.NaN), 'searches_remaining'],
  ['a fraction, deep in a page', page({ logged: [{ shard: 0, rows: 0.5, blob: 0 }] }), 'logged.0.rows'],
])('%s is refused at the door, and the log goes on', async (_, fact, field) => {
  const { store } = temporaryStore()
  const log = await commitLines(store, [HEADER, begun('r'), chainOfAll(0, 'q')])
  const before = await store.list(LOG_FOLDER)
  for (const facts of [[fact], [seal(0, 'credentials/part-00000.csv'), fact]]) {
    await expect(log.append(facts)).rejects.toEqual(anError('data', LOG_FOLDER))
    await expect(log.append(facts)).rejects.toThrow(field)
  }
  expect(await store.list(LOG_FOLDER)).toEqual(before)
  expect(log.state.shards.length).toBe(0)
  await log.append([left(5)])
  expect((await readCheckpoint(store))?.searchesRemaining).toBe(5)
})

test('a checkpoint that a reader would refuse does not replace the one before', async () => {
  const { store, root } = temporaryStore()
  const log = await openLog(store)
  await log.append([begun('r'), left(5)])
  const before = readFileSync(join(root, CHECKPOINT_PATH))
  const state = { ...log.state, runs: [{ ...log.state.runs[0]!, requests: 2 ** 60 }] }
  await expect(saveCheckpoint(await own(store), state)).rejects.toEqual(anError('data', LOG_FOLDER))
  expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(before)
})

const shard: fc.Arbitrary<SealedShard> = fc.record({
  shard: fc.nat(),
  path: fc.string({ unit: 'grapheme' }),
  rows: fc.nat(),
  bytes: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
  sha256: fc.stringMatching(/^[0-9a-f]{64}$/),
  partitions: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }),
  imported_at: fc.option(fc.record({ min: fc.maxSafeInteger(), max: fc.maxSafeInteger() })),
})

it('shards are read back unchanged and in order, however many', () => {
  fc.assert(
    fc.property(fc.array(shard, { maxLength: 350, size: 'max' }), (shards) => {
      const list = new PackedShardList()
      for (const [index, each] of shards.entries()) {
        list.push(each)
        expect(list.length).toBe(index + 1)
      }
      expect([...list]).toEqual(shards)
    }),
    { numRuns: 30 },
  )
})
