import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WindowRun } from '../../src/core/index.ts'
import { chainFromEntry } from '../../src/state/checkpoint/folded-chain.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  chainEntry,
  findCheckpoint,
  Journal,
  type JournalEntry,
  LOG_FOLDER,
  readCheckpoint,
} from '../../src/state/index.ts'
import { commitPath, encodeCommit } from '../../src/state/log/commit.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { expectFigures, expectRowsToBeInShards } from './figures.ts'
import { someJournal } from './imagined-run.ts'
import {
  blobsOf,
  chainOfAll,
  commitLine,
  commitLines,
  days,
  factsOf,
  HEADER,
  type JournalLine,
  openAs,
  openLog,
  own,
  page,
  plain,
  seal,
  stateIn,
  writeLines,
} from './lines.ts'
import { memoryStore } from './memory-store.ts'

const QUERY = 'domain.acme.com'
const KEY = `${QUERY}/all`
const CHAIN = chainOfAll(0, QUERY)

function cursorsOf(lines: readonly JournalLine[]): readonly string[] {
  return factsOf(lines).flatMap((fact) => (fact.kind === 'page' && fact.next !== null ? [fact.next] : []))
}

/** Which of them each chain has seen. */
function met({ chains }: CheckpointState, cursors: readonly string[]) {
  return [...chains.values()].map(({ chain, seen }) => [chain, cursors.filter((cursor) => seen?.has(cursor))])
}

describe('the state of a data set', () => {
  it('follows a chain from its first page to its last', async () => {
    const { store } = temporaryStore()
    const log = await commitLines(store, [HEADER, { kind: 'open', shard: 3, folder: 'credentials', part: 0 }])
    const windows = WindowRun.of('asc', days(4))
    const into = (index: number, rows: number) => ({
      window: windows.names[index]!,
      shard: 3,
      rows,
      imported_at: { min: 10 * index, max: 10 * index + rows },
    })
    /** @returns the chain after these entries, and the states of partitions in order */
    const committed = async (...entries: JournalEntry[]) => {
      await log.commit(entries, blobsOf(entries))
      const states = [...log.state.partitions].map(([, { state }]) => state)
      return [log.state.chains.get(0), states.join(' ')]
    }

    const first = page({
      next: 'a',
      watermark: 2,
      position: { at: 25, late: 0 },
      slices: [into(0, 3), into(1, 1), into(2, 5)],
      logged: [{ shard: 3, rows: 9, blob: 0 }],
    })
    const begun = { next: 'a', pages: 1, watermark: 2, seen: null, requested: windows.range }
    expect(await committed(chainEntry(0, QUERY, windows), first)).toMatchObject([begun, 'done done partial'])

    // A late row reopens its partition, and ends the order.
    const late = page({
      next: 'b',
      position: { at: 25, late: 20 },
      slices: [into(0, 1)],
      logged: [{ shard: 3, rows: 1, blob: 0 }],
    })
    const disordered = { next: 'b', pages: 2, watermark: 2, position: { at: 25, late: 20 } }
    expect(await committed(late)).toMatchObject([disordered, 'partial done partial'])
    expect([...'ab'].map((cursor) => log.state.chains.get(0)?.seen?.has(cursor))).toEqual([true, false])

    const partition = `${QUERY}/${windows.names[2]}`
    const error = { kind: 'transient', message: 'no answer', cause: 'no', next: '' }
    const failed = { kind: 'failed', partition, requests: 4, error } as const
    expect(await committed(failed)).toMatchObject([{ next: 'b' }, 'partial done failed'])
    expect(log.state.partitions.get(partition)).toMatchObject({ requests: 5, error })

    const since = 25
    const anew = { next: null, seen: null, since, watermark: 2 }
    expect(await committed({ kind: 'restart', chain: 0, since })).toMatchObject([anew, 'partial done failed'])
    expect(await committed(page({ next: 'c' }))).toMatchObject([{ next: 'c', since }, 'partial done partial'])
    expect(log.state.partitions.get(partition)).toMatchObject({ requests: 6, error: null })

    const shorter = { next: 'c', windows: windows.part(0, 3) }
    expect(await committed({ kind: 'shorten', chain: 0, windows: 3 })).toMatchObject([
      shorter,
      'partial done partial',
    ])
    expect(await committed(page({ next: null }))).toEqual([undefined, 'done done done'])

    const { openShards, nextShard, nextChain, partsOf } = log.state
    expect([nextShard, nextChain, partsOf.get('credentials')]).toEqual([4, 1, 1])
    expect(openShards.get(3)).toMatchObject({
      partitions: new Set(windows.names.slice(0, 3).map((name) => `${QUERY}/${name}`)),
      importedAt: { min: 0, max: 25 },
      batches: [{ rows: 9 }, { rows: 1 }],
    })
    const sealed = seal(3, 'credentials/part-00000.csv', { rows: 10 })
    await committed(sealed)
    expect({ kind: 'seal', ...[...log.state.shards][0] }).toEqual(sealed)
    expect(log.state.openShards.size).toBe(0)
  })

  it('is the same wherever the checkpoint was saved, with all that its commits say, and all bytes that it needs', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, fc.nat(), fc.nat(), async (lines, first, second) => {
        const store = memoryStore()
        let log = await commitLines(store, lines.slice(0, 1))
        const saves = new Set([1 + (first % lines.length), 1 + (second % lines.length)])
        for (const [index, line] of lines.entries()) {
          if (saves.has(index)) {
            await log.close()
            log = await openLog(store)
          }
          if (index > 0) await commitLine(log, line)
        }
        await log.close()
        const expected = (await commitLines(memoryStore(), lines)).state
        const found = await stateIn(store)
        expect(plain(found)).toEqual(plain(expected))
        const cursors = cursorsOf(lines)
        expect(met(found, cursors)).toEqual(met(expected, cursors))
        // Numbers of chains that have ended may be reused, those of others never.
        for (const chain of found.chains.keys()) expect(chain).toBeLessThan(found.nextChain)
        expect(await contentsOf(log, found)).not.toContain(null)
        expectFigures(found, lines)
        expectRowsToBeInShards(found)
      }),
      { numRuns: cases(60, 5) },
    )
  })

  it('has the windows that the entry of a chain says, whatever their lengths', () => {
    const instant = fc.integer({ min: -8_000_000_000_000_000, max: 8_000_000_000_000_000 })
    const spans = fc.array(fc.tuple(fc.integer({ min: 1, max: 1e12 }), fc.integer({ min: 1, max: 5 })), {
      minLength: 1,
    })
    fc.assert(
      fc.property(instant, spans, fc.constantFrom('asc', 'desc'), (from, spans, order) => {
        const bounds = [from]
        for (const [span, times] of spans) for (let i = 0; i < times; i++) bounds.push(bounds.at(-1)! + span)
        const windows = new WindowRun(order, Float64Array.from(bounds))
        const found = chainFromEntry(JSON.parse(JSON.stringify(chainEntry(3, QUERY, windows))))
        expect(found.windows).toEqual(windows)
        const begun = { chain: 3, query: QUERY, watermark: 0, next: null, requested: windows.range }
        expect(found).toMatchObject(begun)
      }),
    )
  })

  it('keeps a finished partition finished, whatever entries follow', async () => {
    const { store } = temporaryStore()
    const error = { kind: 'data', message: 'could not be encoded', cause: 'no', next: '' }
    const failed = { kind: 'failed', partition: KEY, requests: 0, error } as const
    const log = await commitLines(store, [HEADER, CHAIN, page({ next: null }), failed])
    expect((await stateIn(store)).partitions.get(KEY)).toMatchObject({ state: 'done', error })
    await log.close()
    expect((await stateIn(store)).partitions.get(KEY)).toMatchObject({ state: 'done', error })
  })

  it('of another version is a configuration error, not damage', async () => {
    for (const version of [4, 6]) {
      const { store } = temporaryStore()
      await writeLines(store, [{ ...HEADER, version, more: true }])
      await expect(readCheckpoint(store)).rejects.toEqual(anError('config', CHECKPOINT_PATH))
    }
  })

  it.each([
    ['lacks its header', [page()]],
    ['holds a line of no known kind', [HEADER, { kind: 'surprise' }]],
    ['holds a page with requests below zero', [HEADER, CHAIN, page({ requests: -1 })]],
    ['holds a window of no length', [HEADER, { ...CHAIN, windows: { from: 0, spans: [[0, 1]] } }]],
  ])('whose checkpoint %s is damaged', async (_, lines) => {
    const { store } = temporaryStore()
    await writeLines(store, lines)
    await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', CHECKPOINT_PATH))
  })
})

describe('a commit', () => {
  it('is one object, together with those that wait', async () => {
    const { store } = temporaryStore()
    const log = await commitLines(store, [HEADER, CHAIN])
    const before = (await store.list(LOG_FOLDER)).length
    await Promise.all(Array.from({ length: 20 }, (_, n) => log.append([page({ next: `cursor-${n}` })])))
    expect((await store.list(LOG_FOLDER)).length).toBe(before + 1)
    expect((await stateIn(store)).chains.get(0)).toMatchObject({ pages: 20, next: 'cursor-19' })
  })

  it('with rows for a shard that is not open is refused, and is damage where it is read', async () => {
    const { store } = temporaryStore()
    const log = await commitLines(store, [HEADER, CHAIN])
    const rows = page({ next: 'a', logged: [{ shard: 7, rows: 1, blob: 0 }] })
    await expect(log.commit([rows], [Buffer.from('rows')])).rejects.toMatchObject({ kind: 'data' })
    const { logEnd } = await stateIn(store)
    const next = logEnd.file + 1
    const { chunks } = encodeCommit(logEnd, [{ entries: [rows], blobs: [Buffer.from('rows')] }], next)
    await (await own(store)).create(commitPath(next), chunks)
    await expect(stateIn(store)).rejects.toEqual(anError('damaged', LOG_FOLDER))
  })

  it('that fails ends all later ones, and changes no state', async () => {
    const { store } = temporaryStore()
    await openLog(store)
    const owned = await own(store)
    const failure = new Error('the disk is full')
    let isFull = false
    const failing = {
      ...owned,
      create: (...given: Parameters<typeof owned.create>) =>
        isFull ? Promise.reject(failure) : owned.create(...given),
    }
    const log = await openAs(failing)
    await log.append([CHAIN])
    isFull = true
    await expect(log.append([page()])).rejects.toBe(failure)
    isFull = false
    await expect(log.append([page()])).rejects.toBe(failure)
    await log.close()
    expect(log.state.chains.get(0)?.pages).toBe(0)
    expect((await stateIn(store)).chains.get(0)?.pages).toBe(0)
  })

  it('of a former owner counts for nothing after the claim of the next, however late it comes', async () => {
    const { store } = temporaryStore()
    const former = await commitLines(store, [HEADER, CHAIN])
    const next = await openLog(store)
    await former.append([page({ next: 'late' })])
    expect((await stateIn(store)).chains.get(0)).toMatchObject({ pages: 0 })
    for (let n = 0; n < 5; n++) await next.append([page({ next: `cursor-${n}` })])
    await former.append([page({ next: 'later' })])
    expect((await stateIn(store)).chains.get(0)).toMatchObject({ pages: 5, next: 'cursor-4' })
    await next.close()
    await former.append([page({ next: 'at last' })])
    const last = await openLog(store)
    expect(last.state.chains.get(0)).toMatchObject({ pages: 5, next: 'cursor-4' })
    await last.close()
    expect(await store.list(LOG_FOLDER)).toEqual([])
  })

  it('of a former owner counts before the claim of the next, which reads it', async () => {
    const { store } = temporaryStore()
    const former = await commitLines(store, [HEADER, CHAIN])
    const found = (await findCheckpoint(store))!
    await former.append([page({ next: 'in time' })])
    // A claim says how much of the log it has read.
    expect(await Journal.open(await own(store), found)).not.toBeNull()
    expect((await stateIn(store)).chains.get(0)).toMatchObject({ pages: 0 })
    const again = await openLog(store)
    await again.append([page({ next: 'right' })])
    expect((await stateIn(store)).chains.get(0)).toMatchObject({ pages: 1, next: 'right' })
  })

  it('of two owners that claim the same place one comes first, and the other reads again', async () => {
    const { store } = temporaryStore()
    await commitLines(store, [HEADER, CHAIN])
    const [first, second] = [(await findCheckpoint(store))!, (await findCheckpoint(store))!]
    expect(await Journal.open(await own(store), first)).not.toBeNull()
    expect(await Journal.open(await own(store), second)).toBeNull()
    expect(await Journal.open(await own(store), (await findCheckpoint(store))!)).not.toBeNull()
  })
})

describe.runIf(THOROUGH)('a long chain', () => {
  it('needs a few bytes of memory per page, however long its cursors are', async () => {
    const { store, root } = temporaryStore()
    const cursor = (index: number): string => `${index}-`.padEnd(20_000, 'x')
    const pages = 10_000
    const log = await commitLines(store, [HEADER, CHAIN])
    for (let at = 0; at < pages; at += 500) {
      const some = Array.from({ length: 500 }, (_, index) => page({ next: cursor(at + index) }))
      await Promise.all(some.map((each) => log.append([each])))
    }
    const { stdout } = await promisify(execFile)(process.execPath, [
      join(import.meta.dirname, 'read-a-long-chain.mjs'),
      root,
    ])
    const { mostMb, ...found } = JSON.parse(stdout)
    expect(found).toEqual({ pages, seen: pages - 1, next: 20_000 })
    // The cursors alone have 200 MB.
    expect(mostMb).toBeLessThan(200)
  })
})

describe('damage', () => {
  /** Every file of the state, with rows and ids in the log and a checkpoint in the middle. */
  async function made() {
    const { store, root } = temporaryStore()
    const open: JournalEntry = { kind: 'open', shard: 0, folder: 'credentials', part: 0 }
    const slice = { window: 'all', shard: 0, rows: 1, imported_at: { min: 5, max: 5 } }
    const rows = (next: string) =>
      page({ next, slices: [slice], logged: [{ shard: 0, rows: 1, blob: 0 }], ids: { blob: 1, keep: 1 } })
    await (await commitLines(store, [HEADER, CHAIN, open, rows('a')])).close()
    const log = await openLog(store)
    for (const next of ['b', 'c', 'd']) await commitLine(log, rows(next))
    const files = [
      CHECKPOINT_PATH,
      ...readdirSync(join(root, LOG_FOLDER)).map((name) => `${LOG_FOLDER}/${name}`),
    ]
    return { store, root, files, state: log.state, log }
  }

  it.each(['a flipped bit', 'a cut'])(
    '%s anywhere is refused, or its bytes read as lost; nothing else changes',
    async (kind) => {
      const { store, root, files, state, log } = await made()
      const expected = plain(state)
      const contents = await contentsOf(log, state)
      expect(contents).not.toContain(null)
      for (const path of files) {
        const whole = readFileSync(join(root, path))
        const step = THOROUGH ? 3 : Math.ceil(whole.length / 15)
        for (let at = 0; at < whole.length; at += step) {
          const spoilt = kind === 'a cut' ? whole.subarray(0, at) : Buffer.from(whole)
          if (kind !== 'a cut') spoilt[at]! ^= 1 << (at % 8)
          writeFileSync(join(root, path), spoilt)
          const found = await stateIn(store).catch((error: unknown) => error)
          if (found instanceof Error) {
            // The first line decides whether it is one of this version.
            if (!(path === CHECKPOINT_PATH && at < 200)) expect(found).toEqual(anError('damaged', path))
            continue
          }
          const about = `${kind} at ${at} of ${path}`
          expect(plain(found as CheckpointState), about).toEqual(expected)
          for (const [index, bytes] of (await contentsOf(log, found as CheckpointState)).entries())
            if (bytes !== null) expect(bytes, about).toEqual(contents[index])
        }
        writeFileSync(join(root, path), whole)
      }
      expect(plain(await stateIn(store))).toEqual(expected)
      expect(await contentsOf(log, state)).toEqual(contents)
    },
  )

  it('of a missing object is noticed, but for the last, which is as if it never had been', async () => {
    const { store, root, files } = await made()
    const [, , second, third] = files
    const last = files.at(-1)
    for (const path of [second!, third!]) {
      const whole = readFileSync(join(root, path))
      await (await own(store)).remove(path)
      await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', LOG_FOLDER))
      await (await own(store)).create(path, [whole])
    }
    await (await own(store)).remove(last!)
    expect((await stateIn(store)).chains.get(0)?.next).toBe('c')
  })

  it('of an object in the place of another is noticed', async () => {
    const { store, root, files } = await made()
    const [, , second, third] = files
    await (await own(store)).replace(third!, [readFileSync(join(root, second!))])
    await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', third!))
  })
})

/** The bytes in the log that a state needs; null: lost. */
function contentsOf(log: Journal, state: CheckpointState): Promise<readonly (Uint8Array | null)[]> {
  const refs = [
    ...[...state.openShards.values()].flatMap(({ batches: records }) => records.map(({ at }) => at)),
    ...[...state.chains.values()].flatMap(({ ids }) => ids),
    ...[...state.rejected.values()].flat(),
  ]
  return Promise.all(refs.map((ref) => log.read(ref)))
}
