import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { openSettledJournal } from '../../src/data-set/recover.ts'
import type { JournalEntry } from '../../src/state/index.ts'
import {
  beginCheckpoint,
  type CheckpointState,
  findCheckpoint,
  Journal,
  LOG_FOLDER,
  readBlob,
  readCheckpoint,
} from '../../src/state/index.ts'
import { commitPath } from '../../src/state/log/commit.ts'
import { anError } from '../disk/errors.ts'
import { newOwner, type TemporaryStore, temporaryStore } from '../disk/temporary-store.ts'
import { cases } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import { chainOfAll, commitLine, commitLines, HEADER, page, plain } from './lines.ts'

/** An owner, as a run is one, and its journal. @param former whose rights it ends first */
async function owner({ store }: TemporaryStore, former?: string) {
  const id = newOwner()
  const owned = await store.own(id)
  if (former !== undefined) await owned.takeOver([former])
  if ((await findCheckpoint(store)) === null) await beginCheckpoint(owned, HEADER)
  const open = async () => new Journal(owned, (await findCheckpoint(store))!)
  return { id, owned, open, journal: await open() }
}

function filesIn({ root }: TemporaryStore): readonly string[] {
  return readdirSync(join(root, LOG_FOLDER))
}

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
  changes: { partitions: [], shards: [], rejected: [] },
}

describe('the log of one owner', () => {
  it('holds the same state as a file for each commit', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async ([, ...lines]) => {
        const [one, many] = [temporaryStore(), temporaryStore()]
        const { journal } = await owner(one)
        for (const line of lines) await commitLine(journal, line)
        await commitLines(many.store, [HEADER, ...lines])
        if (lines.length > 0) expect([filesIn(one).length, filesIn(many).length]).toEqual([1, lines.length])
        const places = async (of: TemporaryStore) =>
          JSON.stringify(plain(await stateOf(of))).replace(/"sequence":\d+|"offset":\d+/g, '')
        expect(await places(one)).toBe(await places(many))
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
    await journal.compact()
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
    await journal.append([CHAIN])
    const states = [plain(await stateOf(data))]
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
    return { data, former: former.journal, next: await owner(data, former.id) }
  }

  it('after its rights have ended fails, and does not count', async () => {
    const { data, former, next } = await both()
    expect(await next.journal.claim()).toBe(true)
    await expect(former.append([page({ next: 'late' })])).rejects.toMatchObject({ kind: 'locked' })
    expect(cursor(former.state)).toBe('in time')
    expect(readFileSync(join(data.root, commitPath(1)), 'utf8')).toContain('late')
    expect(cursor(await stateOf(data))).toBe('in time')
    await next.journal.append([page({ next: 'right' })])
    expect(cursor(await stateOf(data))).toBe('right')
    expect(await next.journal.close()).toBeUndefined()
    expect(cursor(await stateOf(data))).toBe('right')
  })

  it('before the next owner has read the log counts, and fails all the same', async () => {
    const { data, former, next } = await both()
    await expect(former.append([page({ next: 'late' })])).rejects.toMatchObject({ kind: 'locked' })
    const journal = await next.open()
    expect(await journal.claim()).toBe(true)
    expect(cursor(journal.state)).toBe('late')
    await journal.append([page({ next: 'right' })])
    expect(cursor(await stateOf(data))).toBe('right')
    expect((await stateOf(data)).chains.get(0)?.pages).toBe(3)
  })

  it('never goes into the file that keeps the claim', async () => {
    const { data, next } = await both()
    await next.journal.claim()
    const { size } = statSync(join(data.root, commitPath(3)))
    for (const cursor of ['a', 'b']) await next.journal.append([page({ next: cursor })])
    expect(statSync(join(data.root, commitPath(3))).size).toBe(size)
    await next.journal.close()
    expect(filesIn(data)).toEqual([commitPath(3).split('/').at(-1)])
  })
})

describe('damage in a file of the log', () => {
  /** Five commits with bytes, in one file. */
  async function made() {
    const data = temporaryStore()
    const { journal } = await owner(data)
    await journal.append([CHAIN])
    for (const next of ['a', 'b', 'c', 'd'])
      await journal.commit([page({ next, ids: { blob: 0, keep: 0 } })], [Buffer.alloc(5000, next)])
    const path = join(data.root, commitPath(1))
    const whole = readFileSync(path)
    /** Where the line of a page begins. */
    const lineOf = (next: string): number =>
      whole.lastIndexOf('{"sequence"', whole.indexOf(`"next":"${next}"`))
    return { data, path, whole, lineOf }
  }

  it('before its last commit is refused', async () => {
    const { data, path, whole, lineOf } = await made()
    const zeroed = Buffer.from(whole)
    zeroed[lineOf('b') + 20] = 0
    const more = [whole.subarray(0, lineOf('b')), Buffer.from('\n'), whole.subarray(lineOf('b'))]
    const less = [whole.subarray(0, lineOf('b') - 1), whole.subarray(lineOf('b'))]
    for (const spoilt of [zeroed, Buffer.concat(more), Buffer.concat(less)]) {
      writeFileSync(path, spoilt)
      await expect(stateOf(data)).rejects.toMatchObject({ kind: 'damaged' })
    }
  })

  it('in the bytes of its last commit is as if that never had been', async () => {
    const { data, path, whole } = await made()
    writeFileSync(path, Buffer.concat([whole.subarray(0, -4000), Buffer.alloc(4000)]))
    expect(cursor(await stateOf(data))).toBe('c')
  })
})

it('nothing is appended to a file that something else has changed', async () => {
  const data = temporaryStore()
  const { journal } = await owner(data)
  await journal.append([CHAIN])
  await journal.append([page({ next: 'a' })])
  const path = join(data.root, commitPath(1))
  truncateSync(path, statSync(path).size - 10)
  await expect(journal.append([page({ next: 'b' })])).rejects.toEqual(anError('damaged', commitPath(1)))
  expect((await stateOf(data)).chains.get(0)?.pages).toBe(0)
})

it('the last commit of an owner that has ended gets a file of its own before another goes on', async () => {
  const data = temporaryStore()
  const former = await owner(data)
  await former.journal.append([CHAIN])
  await former.journal.commit([page({ next: 'a', ids: { blob: 0, keep: 0 } })], [Buffer.from('ids of a')])
  const path = join(data.root, commitPath(1))
  const onDisk = statSync(path).size
  await former.journal.commit([page({ next: 'b', ids: { blob: 0, keep: 0 } })], [Buffer.from('ids of b')])
  const { owned } = await owner(data, former.id)
  const journal = await openSettledJournal({ store: owned, forced: true }, HEADER, () => {})
  await journal.append([page({ next: 'c' })])
  // What was not forced to the disk is lost with the power.
  truncateSync(path, onDisk)
  const state = await stateOf(data)
  expect(state.chains.get(0)).toMatchObject({ pages: 3, next: 'c' })
  const ids = await Promise.all(
    state.chains.get(0)!.ids.map(async (ref) => String(await readBlob(data.store, ref))),
  )
  expect(ids).toHaveLength(1)
  expect(Buffer.from(ids[0]!.split(',').map(Number)).toString()).toBe('ids of b')
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

it('a commit that fails in the middle leaves what was committed before it', async () => {
  const data = temporaryStore()
  const { owned, open } = await owner(data)
  const failure = new Error('the disk is full')
  const failing: OwnedStore = {
    ...owned,
    async extend(path, size, chunks) {
      await owned.extend!(path, size, [Buffer.concat([...chunks]).subarray(0, 50)])
      throw failure
    },
  }
  const journal = new Journal(failing, (await findCheckpoint(data.store))!)
  await journal.append([CHAIN])
  await expect(journal.append([page({ next: 'a' })])).rejects.toBe(failure)
  await journal.close()
  const next = await open()
  await next.append([page({ next: 'b' })])
  await next.append([page({ next: 'c' })])
  expect(filesIn(data)).toHaveLength(2)
  expect((await stateOf(data)).chains.get(0)).toMatchObject({ pages: 2, next: 'c' })
})
