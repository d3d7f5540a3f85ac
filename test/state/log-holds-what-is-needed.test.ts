import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OwnedStore, Store } from '../../src/core/index.ts'
import { clearDataSet } from '../../src/data-set/open/clear-data-set.ts'
import { openChecked } from '../../src/data-set/open/open-checked.ts'
import type { CheckpointState } from '../../src/state/checkpoint/fold-journal.ts'
import type { BlobRef, Journal, JournalEntry } from '../../src/state/index.ts'
import { blobsNeeded } from '../../src/state/log/blobs.ts'
import { type CommitPart, commitPath, readBlob } from '../../src/state/log/commit.ts'
import { listLog } from '../../src/state/log/read-log.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import { blobsOf, chainOfAll, factsOf, HEADER, openAs, own, PRUNE, page, seal, stateIn } from './lines.ts'
import { memoryStore } from './memory-store.ts'

const query = (name: string, value = name): JournalEntry => ({ kind: 'query', name, value })

const commit = (entries: readonly JournalEntry[]): CommitPart => ({ entries, blobs: blobsOf(entries) })

async function write(store: OwnedStore, commits: readonly CommitPart[]): Promise<Journal> {
  const log = await openAs(store)
  for (const { entries, blobs } of commits) await log.commit(entries, blobs)
  return log
}

/** What the bytes say that a state refers to, by who needs them; null: they are lost or changed. */
async function textsIn(store: Store, state: CheckpointState) {
  const textOf = async (ref: BlobRef): Promise<string | null> => {
    const bytes = await readBlob(store, ref)
    return bytes === null ? null : Buffer.from(bytes).toString()
  }
  const texts: [string, (string | null)[]][] = []
  const add = async (of: string, refs: readonly BlobRef[]): Promise<void> => {
    if (refs.length > 0) texts.push([of, await Promise.all(refs.map(textOf))])
  }
  for (const [shard, { batches: records }] of state.openShards)
    await add(
      `shard ${shard}`,
      records.map(({ at }) => at),
    )
  for (const [chain, { ids }] of state.chains) await add(`chain ${chain}`, ids)
  for (const [key, refs] of state.rejected) await add(key, refs)
  return new Map(texts)
}

const contentIn = async (store: Store) => textsIn(store, await stateIn(store))

async function textAt(log: Journal, ref: BlobRef): Promise<string | null> {
  const bytes = await log.read(ref)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

/** What chains leave that have begun, each with one page, an open shard and rejected items, a commit each. */
function chains(count: number, first = 100): readonly CommitPart[] {
  return Array.from({ length: count }, (_, i): CommitPart => {
    const number = first + i
    const slices = [{ window: 'all', shard: number, rows: 1, imported_at: null }]
    const logged = [{ shard: number, rows: 1, blob: 1 }]
    const quarantine = [{ window: 'all', items: 1, blob: 2 }]
    return {
      entries: [
        { kind: 'open', shard: number, folder: `credentials/${number}`, part: 0 },
        chainOfAll(number, `domain.d${number}.com`),
        page({ chain: number, slices, logged, quarantine, ids: { blob: 0, keep: 0 } }),
      ],
      blobs: ['ids', 'rows', 'rejected'].map((what) => Buffer.from(`${what} of ${number}`)),
    }
  })
}

it('every owner claims its place before it changes anything, and reads what came first', async () => {
  const { store } = temporaryStore()
  const former = await write(await own(store), chains(1))
  const owned = await own(store)
  const changes: string[] = []
  let late: Promise<unknown> | null = null
  const noted: OwnedStore = {
    ...owned,
    async create(path, chunks) {
      // Another claim comes first, of an owner that has ended.
      late ??= openAs(await own(store))
      await late
      changes.push(path)
      return owned.create(path, chunks)
    },
  }
  const journal = await openChecked(noted, HEADER)
  await journal.append([query('change')])
  expect(changes.map((path) => path.slice(-16))).toEqual([
    '0000000200000000',
    '0000000300000000',
    '0000000300000001',
  ])
  expect([...journal.state.queries.keys()]).toEqual(['change'])
  await former.append([query('later')])
  expect([...(await stateIn(store)).queries.keys()]).toEqual(['change'])
})

describe('objects of the log', () => {
  it('go when nothing needs them any more, and no others', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, fc.nat(), async ([, ...lines], index) => {
        const commits = lines.map((line) => commit(factsOf([line])))
        const at = index % (commits.length + 1)
        const store = memoryStore()
        await (await write(store, commits.slice(0, at))).close()
        const log = await write(store, commits.slice(at))
        await log.sweep()
        const [last = 0] = (await listLog(store)).slice(-1)
        expect(await listLog(store)).toEqual(
          expect.arrayContaining(commits.slice(at).map((_, i) => last - i)),
        )
        const before = await contentIn(store)
        await log.close()
        const needed = Array.from(blobsNeeded(log.state), ({ file }) => file)
        expect(await listLog(store)).toEqual([...new Set(needed)].sort((a, b) => a - b))
        expect(await contentIn(store)).toEqual(before)
        expect([...before.values()].flat()).not.toContain(null)
      }),
      { numRuns: cases(100, 6) },
    )
  })

  it('that are many and small are gathered into few, where whoever knew their places finds them', async () => {
    const store = memoryStore()
    const log = await write(store, chains(1001))
    const before = await contentIn(store)
    const places = [...blobsNeeded(log.state)]
    const texts = await Promise.all(places.map((ref) => textAt(log, ref)))
    expect(places).toHaveLength(3003)
    await log.close()
    expect(await listLog(store)).toHaveLength(1)
    expect(await contentIn(store)).toEqual(before)
    expect(await Promise.all(places.map((ref) => textAt(log, ref)))).toEqual(texts)
    // What another run adds is gathered beside it, or with it.
    const next = await write(store, chains(THOROUGH ? 1001 : 501, 2000))
    const both = await contentIn(store)
    await next.close()
    expect((await listLog(store)).length).toBeLessThan(3)
    expect(await contentIn(store)).toEqual(both)
  })

  it.runIf(THOROUGH)('are gathered before a commit that comes meanwhile', async () => {
    const store = memoryStore()
    const log = await write(store, chains(1001))
    await Promise.all([log.close(), log.append([query('late')])])
    expect((await stateIn(store)).queries.get('late')).toBe('late')
  })

  it('hold nothing of what is pruned, also where rows of others lie in the same object', async () => {
    const store = memoryStore()
    const log = await openAs(store)
    const [old, other] = chains(2)
    // Commits that come at the same time share an object.
    const both = [log.commit([query('first')]), log.commit(old!.entries, old!.blobs)]
    await Promise.all([...both, log.commit(other!.entries, other!.blobs)])
    const partition = 'domain.d100.com/all'
    await log.append([
      seal(100, 'credentials/100/part-00000.csv', { partitions: [partition] }),
      page({ chain: 100, next: null }),
    ])
    await log.append([{ kind: 'prune', ...PRUNE, removed: [{ partition, rows: 1, quarantined: 1 }] }])
    const texts = () => [...store.files.values()].map((file) => Buffer.from(file).toString()).join()
    expect(texts()).toContain('rows of 100')
    await log.erase()
    expect(texts()).not.toMatch(/(?:rows|ids|rejected) of 100/)
    expect([...(await contentIn(store)).values()].flat()).toEqual([
      'rows of 101',
      'ids of 101',
      'rejected of 101',
    ])
  })

  it('stay where the last checkpoint says as long as the next one cannot be saved', async () => {
    const store = memoryStore()
    await (await write(store, chains(3))).close()
    const log = await write(store, chains(3, 200))
    const before = await contentIn(store)
    const { replace } = store
    store.replace = () => Promise.reject(new Error('a full disk'))
    await expect(log.close()).rejects.toThrow('a full disk')
    await log.sweep()
    expect(await contentIn(store)).toEqual(before)
    store.replace = replace
    await (await openAs(store)).close()
    expect(await contentIn(store)).toEqual(before)
    expect(await listLog(store)).toHaveLength(1)
  })

  it('that are lost or changed stay where they are when others are gathered', async () => {
    const store = memoryStore()
    await write(store, chains(1001))
    const lost = (await listLog(store))[7]!
    const whole = store.files.get(commitPath(lost))!
    store.files.set(commitPath(lost), whole.fill(0, whole.length - 3))
    await (await openAs(store)).close()
    const { rejected } = await stateIn(store)
    expect([...rejected.values()].flat().filter(({ file }) => file === lost)).toHaveLength(1)
    expect(await listLog(store)).toEqual([lost, expect.any(Number)])
  })

  it('are few in a long run that rejects items and seals shards, and a reader can follow it', async () => {
    const store = memoryStore()
    const log = await write(store, [commit([chainOfAll(0, 'domain.acme.com')])])
    const [pages, period] = THOROUGH ? [6000, 2500] : [1500, 600]
    const cursor = 'x'.repeat(500)
    let [most, last] = [0, 0]
    let reads = Promise.resolve()
    const read = async (): Promise<void> => {
      const { logEnd } = await stateIn(store)
      expect(logEnd.file).toBeGreaterThanOrEqual(last)
      last = logEnd.file
    }
    /** Rows of two open shards, as whoever encodes them knows them. */
    const waiting = new Map<string, BlobRef>()
    for (let number = 0; number < pages; number++) {
      const slow = number - (number % period)
      const shard = number - (number % 10) + 1
      const rowsIn = (shard: number) => ({ window: 'all', shard, rows: 1, imported_at: null })
      const entries: JournalEntry[] = []
      for (const each of new Set([slow, shard]))
        if (!log.state.openShards.has(each))
          entries.push({ kind: 'open', shard: each, folder: `credentials/${each % 2}`, part: each })
      entries.push(
        page({
          next: `${cursor}${number}`,
          slices: [rowsIn(slow), rowsIn(shard)],
          logged: [slow, shard].map((shard, i) => ({ shard, rows: 1, blob: 1 + i })),
          quarantine: [{ window: 'all', items: 1, blob: 3 }],
          ids: { blob: 0, keep: 3 },
        }),
      )
      const blobs = ['ids', 'slow', 'rows', 'rejected'].map((what) => Buffer.from(`${what} ${number}`))
      const refs = await log.commit(entries, blobs)
      waiting.set(`slow ${number}`, refs[1]!)
      if (number % 10 === 9) await log.append([seal(shard, `credentials/1/part-${shard}.csv`, { rows: 10 })])
      if (number % period === period - 1) {
        for (const [text, ref] of waiting) expect(await textAt(log, ref)).toBe(text)
        waiting.clear()
        await log.append([seal(slow, `credentials/0/part-${slow}.csv`, { rows: period })])
      }
      most = Math.max(most, store.files.size)
      // While others are committed.
      if (number % 50 === 0) reads = reads.then(read)
    }
    for (const [text, ref] of waiting) expect(await textAt(log, ref)).toBe(text)
    await reads
    expect(most).toBeLessThan(3500)
    await log.close()
    expect([...(await contentIn(store)).values()].flat()).not.toContain(null)
  })

  it('are few after many short runs on a large journal', async () => {
    const store = memoryStore()
    const large = Array.from({ length: 36 }, (_, i) => query(`q${i}`, 'x'.repeat(250_000)))
    await (await write(store, [commit(large)])).close()
    for (let run = 0; run < 10; run++) {
      const log = await openAs(store)
      expect((await store.list('_state/log')).length).toBeLessThan(12)
      // Every other one is killed.
      await log.append([query(`run ${run}`, 'x'.repeat(300_000))])
      if (run % 2 === 0) await log.close()
    }
    expect((await stateIn(store)).queries.size).toBe(46)
  })
})

it('nothing of a former owner counts in a data set that starts over', async () => {
  const { store } = temporaryStore()
  const [first, second] = [await own(store), await own(store)]
  for (const commits of [0, 3]) {
    const former = await write(
      first,
      Array.from({ length: commits }, () => commit([query('a')])),
    )
    await former.close()
    await clearDataSet(second, () => {})
    const next = await openAs(second)
    await former.append([query('c')])
    await next.append([query('b')])
    await next.close()
    await former.append([query('d')])
    expect([...(await stateIn(store)).queries.keys()]).toEqual(['b'])
  }
})

it('a list that was made during commits may have holes', async () => {
  const store = memoryStore()
  const { state } = await write(store, chains(40))
  const { list } = store
  store.list = async (folder) => (await list(folder)).filter((_, i) => i % 7 !== 3)
  expect((await stateIn(store)).logEnd).toEqual(state.logEnd)
})
