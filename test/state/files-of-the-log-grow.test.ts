import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { type CheckpointState, type JournalEntry, LOG_FOLDER, readCheckpoint } from '../../src/state/index.ts'
import { claimFile, commitPath } from '../../src/state/log/commit.ts'
import { encodeLine } from '../../src/state/log/lines.ts'
import { anError } from '../disk/errors.ts'
import { newOwner, type TemporaryStore, temporaryStore } from '../disk/temporary-store.ts'
import { cases } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import { chainOfAll, commitLine, commitLines, HEADER, openAs, page, plain } from './lines.ts'

/** An owner, as a run is one, and its journal. */
async function owner({ store }: TemporaryStore) {
  const id = newOwner()
  const owned = await store.own(id)
  const open = () => openAs(owned)
  return { id, owned, open, journal: await open() }
}

/** The next owner, which has ended the rights of the former one. */
async function successor({ store }: TemporaryStore, former: string, id = newOwner()): Promise<OwnedStore> {
  const owned = await store.own(id)
  await owned.takeOver([former])
  return owned
}

const filesIn = ({ root }: TemporaryStore): readonly string[] => readdirSync(join(root, LOG_FOLDER))

/** The files of the first owner, from that of its claim on. */
const pathIn = (index: number): string => commitPath(claimFile(1) + index)
const pathOf = ({ root }: TemporaryStore, index: number): string => join(root, pathIn(index))

const line = (value: object): Buffer => encodeLine(value, 0).line

const stateOf = async ({ store }: TemporaryStore): Promise<CheckpointState> => (await readCheckpoint(store))!
const cursor = (state: CheckpointState): string | null | undefined => state.chains.get(0)?.next
const CHAIN = chainOfAll(0, 'domain.acme.com')

/** Bytes of earlier commits are not wanted any more. */
const ERASURE: JournalEntry = {
  kind: 'forget',
  at: '2024-07-03T00:00:00Z',
  identities: 1,
  rows: 0,
  shards: 0,
  quarantined: 0,
  changes: { partitions: [], rejected: [], rewritten: [] },
}

describe('the log of one owner', () => {
  it('holds the same state as a file for each commit', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async ([, ...lines]) => {
        const [one, many] = [temporaryStore(), temporaryStore()]
        const { journal } = await owner(one)
        for (const line of lines) await commitLine(journal, line)
        await commitLines(many.store, [HEADER, ...lines])
        expect([filesIn(one).length, filesIn(many).length]).toEqual([1, 1 + lines.length])
        expect(plain(await stateOf(one))).toEqual(plain(await stateOf(many)))
      }),
      { numRuns: cases(40, 4) },
    )
  })

  it('goes on in another file at its size, after an erasure, and when it is saved', async () => {
    const data = temporaryStore()
    const { journal, open } = await owner(data)
    const ids = { ids: { blob: 0, keep: 0 } }
    await journal.append([CHAIN])
    await journal.commit([page({ next: 'a', ...ids })], [new Uint8Array(1 << 20)])
    expect(filesIn(data)).toHaveLength(1)
    await journal.append([page({ next: 'b' })])
    expect(filesIn(data)).toHaveLength(2)
    await journal.append([ERASURE])
    await journal.append([page({ next: 'c' })])
    await journal.append([page({ next: 'd' })])
    expect(filesIn(data)).toHaveLength(3)
    await journal.erase()
    await journal.append([page({ next: 'e' })])
    const last = filesIn(data).at(-1)!
    await journal.close()
    const next = await open()
    await next.append([page({ next: 'f' })])
    expect(filesIn(data).at(-1)! > last).toBe(true)
    expect((await stateOf(data)).chains.get(0)).toMatchObject({ pages: 6, next: 'f' })
  })

  it('that is cut is what was committed before; nothing else changes', async () => {
    const data = temporaryStore()
    const { journal } = await owner(data)
    const states = [plain(await stateOf(data))]
    await journal.append([CHAIN])
    states.push(plain(await stateOf(data)))
    for (const next of ['a', 'b', 'c']) {
      const ids = { ids: { blob: 0, keep: 0 } }
      await journal.commit([page({ next, ...ids })], [Buffer.from('ids of a page, in some bytes')])
      states.push(plain(await stateOf(data)))
    }
    const [name] = filesIn(data)
    const path = join(data.root, LOG_FOLDER, name!)
    const whole = readFileSync(path)
    const first = whole.indexOf('\n') + 1
    const found = new Set<string>()
    for (let end = first; end < whole.length; end += 7) {
      for (const spoilt of [
        whole.subarray(0, end),
        Buffer.concat([whole.subarray(0, end), Buffer.alloc(40), Buffer.from('\n')]),
      ]) {
        writeFileSync(path, spoilt)
        const state = plain(await stateOf(data))
        expect(states, `cut at ${end}`).toContainEqual(state)
        found.add(JSON.stringify(state))
      }
    }
    expect(found.size).toBe(states.length - 1)
  })
})

describe('what a former owner appends', () => {
  /** A former owner that has committed, and one that ends its rights. */
  async function both() {
    const data = temporaryStore()
    const former = await owner(data)
    await former.journal.append([CHAIN])
    await former.journal.append([page({ next: 'in time' })])
    return { data, former: former.journal, owned: await successor(data, former.id) }
  }

  it('after the claim of the next fails, and does not count', async () => {
    const { data, former, owned } = await both()
    const next = await openAs(owned)
    await expect(former.append([page({ next: 'late' })])).rejects.toMatchObject({ kind: 'locked' })
    expect(cursor(former.state)).toBe('in time')
    expect(readFileSync(pathOf(data, 0), 'utf8')).toContain('late')
    expect(cursor(await stateOf(data))).toBe('in time')
    await next.append([page({ next: 'right' })])
    expect(cursor(await stateOf(data))).toBe('right')
    await next.close()
    expect(cursor(await stateOf(data))).toBe('right')
  })

  it('before the claim of the next counts, and fails all the same', async () => {
    const { data, former, owned } = await both()
    await expect(former.append([page({ next: 'late' })])).rejects.toMatchObject({ kind: 'locked' })
    const journal = await openAs(owned)
    expect(cursor(journal.state)).toBe('late')
    await journal.append([page({ next: 'right' })])
    expect((await stateOf(data)).chains.get(0)).toMatchObject({ pages: 3, next: 'right' })
  })
})

describe('the end of the log', () => {
  /** Five commits with bytes behind a claim, in one file. */
  async function made() {
    const data = temporaryStore()
    const { journal, owned } = await owner(data)
    await journal.append([CHAIN])
    for (const next of ['a', 'b', 'c', 'd'])
      await journal.commit([page({ next, ids: { blob: 0, keep: 0 } })], [Buffer.alloc(5000, next)])
    const path = pathOf(data, 0)
    const whole = readFileSync(path)
    /** Where the line of a page begins. */
    const lineOf = (next: string): number => whole.lastIndexOf('{"parts"', whole.indexOf(`"next":"${next}"`))
    return { data, owned, path, whole, lineOf }
  }

  it('is behind the last whole commit of the last file, whatever else is there', async () => {
    const { data, path, whole, lineOf } = await made()
    const [b, c] = [lineOf('b'), lineOf('c')]
    const zeroed = Buffer.from(whole)
    zeroed[b + 20] = 0
    for (const [spoilt, last] of [
      [zeroed, 'a'],
      [Buffer.concat([whole.subarray(0, b), Buffer.from('\n'), whole.subarray(b)]), 'a'],
      [Buffer.concat([whole.subarray(0, b - 1), whole.subarray(b)]), undefined],
      [Buffer.concat([whole.subarray(0, -4000), Buffer.alloc(4000)]), 'c'],
      // Former contents of the blocks, which an exported text may be.
      [Buffer.concat([whole.subarray(0, c), line({ a: 1 })]), 'b'],
      [Buffer.concat([whole.subarray(0, c + 40), Buffer.from('\n'), line({ a: 1 })]), 'b'],
      [Buffer.concat([whole.subarray(0, c), whole.subarray(lineOf('a'), b)]), 'b'],
    ] as const) {
      writeFileSync(path, spoilt)
      expect(cursor(await stateOf(data)) ?? undefined).toBe(last)
    }
  })

  it('stays where the next owner has found it', async () => {
    const { data, owned, path, whole, lineOf } = await made()
    writeFileSync(path, whole.subarray(0, -10))
    const journal = await openAs(owned)
    expect(cursor(journal.state)).toBe('c')
    // The rest of a write that was under way.
    writeFileSync(path, whole)
    expect(cursor(await stateOf(data))).toBe('c')
    await journal.append([page({ next: 'e' })])
    expect((await stateOf(data)).chains.get(0)).toMatchObject({ pages: 4, next: 'e' })
    // Before it nothing may change any more.
    writeFileSync(path, whole.subarray(0, lineOf('c') + 10))
    await expect(stateOf(data)).rejects.toEqual(anError('damaged', pathIn(0)))
  })
})

it('nothing is appended to a file that something else has changed', async () => {
  const data = temporaryStore()
  const { journal } = await owner(data)
  await journal.append([CHAIN])
  await journal.append([page({ next: 'a' })])
  const path = pathOf(data, 0)
  truncateSync(path, statSync(path).size - 10)
  await expect(journal.append([page({ next: 'b' })])).rejects.toEqual(anError('damaged', pathIn(0)))
  expect((await stateOf(data)).chains.get(0)?.pages).toBe(0)
})

it('the last commit of an owner that has ended is forced to the disk before another goes on', async () => {
  const data = temporaryStore()
  const former = await owner(data)
  await former.journal.append([CHAIN])
  const owned = await successor(data, former.id)
  const calls: string[] = []
  const noted: OwnedStore = {
    ...owned,
    fsync: (path) => {
      calls.push(`fsync ${path}`)
      return owned.fsync!(path)
    },
    create: (path, chunks) => {
      calls.push(`create ${path}`)
      return owned.create(path, chunks)
    },
  }
  await openAs(noted)
  expect(calls).toEqual([`fsync ${pathIn(0)}`, `create ${commitPath(claimFile(2))}`])
})

it('a file that is removed while it is read is no cut log', async () => {
  const data = temporaryStore()
  const { journal } = await owner(data)
  await journal.append([CHAIN])
  for (const next of ['a', 'b', 'c']) await journal.append([page({ next })])
  let reads = 0
  const store = {
    ...data.store,
    async read(...given: Parameters<typeof data.store.read>) {
      if (++reads === 3) await journal.close()
      return data.store.read(...given)
    },
  }
  expect(cursor((await readCheckpoint(store))!)).toBe('c')
})

it('a reader beside owners that follow each other finds what was committed, and never damage', async () => {
  const data = temporaryStore()
  let isOver = false
  let reads = 0
  const reading = (async () => {
    for (let last = 0; !isOver; reads++) {
      await new Promise(setImmediate)
      const pages = (await readCheckpoint(data.store))?.chains.get(0)?.pages ?? 0
      expect(pages).toBeGreaterThanOrEqual(last)
      last = pages
    }
  })()
  let former: string | undefined
  for (let run = 0; run < 8; run++) {
    const id = newOwner()
    const owned = await data.store.own(id)
    if (former !== undefined) await owned.takeOver([former])
    former = id
    const journal = await openAs(owned)
    if (run === 0) await journal.append([CHAIN])
    const ids = { ids: { blob: 0, keep: 1 } }
    for (let n = 0; n < 20; n++) await journal.commit([page(ids)], [new Uint8Array(80_000)])
    // Every other one is killed.
    if (run % 2 === 0) await journal.close()
  }
  isOver = true
  await reading
  expect(reads).toBeGreaterThan(10)
  expect((await stateOf(data)).chains.get(0)?.pages).toBe(160)
})
