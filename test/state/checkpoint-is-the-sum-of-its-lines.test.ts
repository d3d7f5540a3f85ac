import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JournalEntry, WindowRun } from '../../src/core/index.ts'
import { chainFromEntry } from '../../src/state/checkpoint/chain-record.ts'
import {
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  type CheckpointState,
  chainEntry,
  openCheckpoint,
  readCheckpoint,
  rewriteCheckpoint,
} from '../../src/state/index.ts'
import type { JournalLine } from '../../src/state/journal/journal-line.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { cases } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import {
  chainOfAll,
  factsOf,
  HEADER,
  page,
  plain,
  seal,
  stateIn,
  writeCheckpoint,
  writeJournal,
} from './lines.ts'
import { expectRowsToBeInShards, expectToBeTheSumOf } from './sum-of-lines.ts'

const accept = (): void => {}
const QUERY = 'domain.acme.com'
const KEY = `${QUERY}/all`
const CHAIN = chainOfAll(0, QUERY)

/** The cursors of all pages of a journal. */
function cursorsOf(lines: readonly JournalLine[]): readonly string[] {
  return factsOf(lines).flatMap((fact) => (fact.kind === 'page' && fact.next !== null ? [fact.next] : []))
}

/** Which of them each chain has seen. */
function met({ chains }: CheckpointState, cursors: readonly string[]) {
  return [...chains.values()].map(({ chain, seen }) => [chain, cursors.filter((cursor) => seen?.has(cursor))])
}

describe('a checkpoint', () => {
  it('is the sum of its lines, whether they are read back or kept while they are written', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, fc.nat({ max: 60 }), async (lines, read) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, lines.slice(0, 1 + read))
        const checkpoint = await openCheckpoint(store, HEADER, accept)
        for (const line of lines.slice(1 + read)) await checkpoint.append(factsOf([line]))
        await checkpoint.close()
        expectToBeTheSumOf(checkpoint.state, lines)
        const again = await stateIn(store)
        expectToBeTheSumOf(again, lines)
        expect(plain(again)).toEqual(plain(checkpoint.state))
      }),
      { numRuns: cases(60, 6) },
    )
  })

  it('has every row of its partitions in a shard, and every row of a shard in a partition', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async (lines) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, lines)
        expectRowsToBeInShards(await stateIn(store))
      }),
      { numRuns: cases(30, 4) },
    )
  })

  it('exists from its first complete line on; a file without one is refused and not changed', async () => {
    const { store, root } = temporaryStore()
    expect(await readCheckpoint(store)).toBeNull()
    const found: unknown[] = []
    await (await openCheckpoint(store, HEADER, (state) => void found.push(state))).close()
    expect(found).toEqual([null])
    expect((await readCheckpoint(store))?.header).toEqual(HEADER)
    const whole = readFileSync(join(root, CHECKPOINT_PATH))
    expect(whole.toString().startsWith(CHECKPOINT_START)).toBe(true)
    for (const text of [
      '',
      whole.subarray(0, 1),
      whole.subarray(0, -1),
      'something else\n',
      '{"kind":"page"}\n',
    ]) {
      await store.writeWhole(CHECKPOINT_PATH, [text])
      await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', CHECKPOINT_PATH))
      await expect(openCheckpoint(store, HEADER, () => {})).rejects.toEqual(
        anError('damaged', CHECKPOINT_PATH),
      )
      expect(readFileSync(join(root, CHECKPOINT_PATH)).toString()).toBe(text.toString())
    }
  })

  it('is not changed when it is refused', async () => {
    const { store, root } = temporaryStore()
    await writeCheckpoint(store, [HEADER, page()])
    const torn = Buffer.concat([readFileSync(join(root, CHECKPOINT_PATH)), Buffer.from('{"kind"')])
    await store.writeWhole(CHECKPOINT_PATH, [torn])
    const refusal = new Error('other settings')
    const refuse = (): never => {
      throw refusal
    }
    await expect(openCheckpoint(store, HEADER, refuse)).rejects.toBe(refusal)
    expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(torn)
    const other = temporaryStore()
    await expect(openCheckpoint(other.store, HEADER, refuse)).rejects.toBe(refusal)
    expect(await other.store.list('_state')).toEqual([])
  })

  it.each([2, 4])('of another version, %i, is a configuration error, not damage', async (version) => {
    const { store } = temporaryStore()
    await writeJournal(store, CHECKPOINT_PATH, [{ ...HEADER, version, more: true }])
    await expect(readCheckpoint(store)).rejects.toEqual(anError('config', CHECKPOINT_PATH))
    await expect(openCheckpoint(store, HEADER, accept)).rejects.toEqual(anError('config', CHECKPOINT_PATH))
  })

  it.each([
    ['lacks its header', [page()]],
    ['holds a line of no known kind', [HEADER, { kind: 'surprise' }]],
    ['holds a page with requests below zero', [HEADER, CHAIN, page({ requests: -1 })]],
    [
      'holds a page of the version before',
      [HEADER, { kind: 'page', partition: KEY, next: 'n', rows: 1, requests: 1 }],
    ],
    ['holds a window of no length', [HEADER, { ...CHAIN, windows: { from: 0, spans: [[0, 1]] } }]],
    [
      'puts lines together that are together already',
      [HEADER, { kind: 'transaction', entries: [{ kind: 'transaction', entries: [CHAIN] }] }],
    ],
  ])('that %s is damaged', async (_, lines) => {
    const { store } = temporaryStore()
    await writeJournal(store, CHECKPOINT_PATH, lines)
    await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', CHECKPOINT_PATH))
  })

  it('counts unknown fields by any name', async () => {
    const { store } = temporaryStore()
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'ordinary']
    const fields = Object.fromEntries(names.map((name) => [name, 2]))
    await writeCheckpoint(store, [
      HEADER,
      CHAIN,
      page({ unknown_fields: fields }),
      page({ unknown_fields: fields }),
    ])
    const state = await readCheckpoint(store)
    expect(state?.unknownFields).toEqual(new Map(names.map((name) => [name, 4])))
  })

  it('keeps a finished partition finished, whatever entries follow', async () => {
    const { store } = temporaryStore()
    const error = { kind: 'data', message: 'could not be encoded' }
    await writeCheckpoint(store, [
      HEADER,
      CHAIN,
      page({ next: null }),
      { kind: 'failed', partition: KEY, requests: 0, error },
    ])
    expect((await stateIn(store)).partitions.get(KEY)).toMatchObject({ state: 'done', error })
    await rewriteCheckpoint(store, await stateIn(store))
    expect((await stateIn(store)).partitions.get(KEY)).toMatchObject({ state: 'done', error })
  })

  it('has all entries of one append or none, wherever the last is torn', async () => {
    const { store, root } = temporaryStore()
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    await checkpoint.append([CHAIN])
    const before = readFileSync(join(root, CHECKPOINT_PATH)).length
    const open: JournalEntry = { kind: 'open', shard: 0, folder: 'credentials', part: 0 }
    const piece = { window: 'all', shard: 0, rows: 3, imported_at: { min: 1, max: 2 } }
    await checkpoint.append([
      open,
      page({ slices: [piece], logged: [{ shard: 0, generation: 1, end: 24, rows: 3 }] }),
      { kind: 'run', run: 'a', started_at: '2024-07-01T00:00:00.000Z', version: '1.0.0' },
    ])
    await checkpoint.close()
    const whole = readFileSync(join(root, CHECKPOINT_PATH))
    const ends = Array.from(
      { length: 60 },
      (_, part) => before + Math.floor((part * (whole.length - before)) / 60),
    )
    for (const end of [...ends, whole.length - 1, whole.length]) {
      await store.writeWhole(CHECKPOINT_PATH, [whole.subarray(0, end)])
      const { openShards, partitions, runs } = await stateIn(store)
      const found = [openShards.size, partitions.get(KEY)?.rows ?? 0, runs.length]
      expect(found).toEqual(end === whole.length ? [1, 3, 1] : [0, 0, 0])
    }
  })

  it('appends nothing for an empty commit', async () => {
    const { store, root } = temporaryStore()
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    const before = readFileSync(join(root, CHECKPOINT_PATH))
    await checkpoint.append([])
    await checkpoint.close()
    expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(before)
  })
})

describe('the windows of a chain', () => {
  const instant = fc.integer({ min: -8_000_000_000_000_000, max: 8_000_000_000_000_000 })
  const bounds = fc
    .tuple(
      instant,
      fc.array(fc.tuple(fc.integer({ min: 1, max: 1_000_000_000_000 }), fc.integer({ min: 1, max: 5 }))),
    )
    .map(([from, spans]) => {
      const all = [from]
      for (const [span, times] of spans) for (let i = 0; i < times; i++) all.push(all.at(-1)! + span)
      return all
    })

  it('are read back from its line unchanged, whatever their lengths', () => {
    fc.assert(
      fc.property(bounds, fc.constantFrom('asc' as const, 'desc' as const), (bounds, order) => {
        fc.pre(bounds.length > 1)
        const windows = new WindowRun(order, Float64Array.from(bounds))
        const line = JSON.parse(JSON.stringify(chainEntry(3, QUERY, windows)))
        const record = chainFromEntry(line)
        expect(record.windows).toEqual(windows)
        expect(record).toMatchObject({
          chain: 3,
          query: QUERY,
          watermark: 0,
          next: null,
          requested: windows.range,
        })
      }),
    )
  })

  it('are one entry of the line if all have the same length, however many they are', () => {
    const line = chainEntry(
      0,
      QUERY,
      new WindowRun(
        'desc',
        Float64Array.from({ length: 10_001 }, (_, day) => day * 5),
      ),
    )
    expect(line.windows).toEqual({ from: 0, spans: [[5, 10_000]] })
    expect(chainFromEntry(line).windows.count).toBe(10_000)
  })

  it('are none if its rows are one partition', () => {
    const { windows, requested } = chainFromEntry(CHAIN as Extract<JournalEntry, { kind: 'chain' }>)
    expect([windows.bounds, windows.count, requested]).toEqual([null, 1, null])
  })
})

describe('a checkpoint that is rewritten', () => {
  /** The entries that describe a state. */
  const leastLines = (state: CheckpointState): number => {
    const runs = state.runs.map(({ finished_at, requests, searches, searchesRemaining: left }) =>
      finished_at !== null || requests > 0 || searches !== null || left !== null ? 2 : 1,
    )
    const { pageSize, tellsSearches, costs, times, limit, limits } = state.service
    const isMeasured =
      [pageSize, tellsSearches, state.searchesRemaining].some((each) => each !== null) ||
      costs.length + times.length > 0
    const hasLimit = limit !== null || limits.size > 0
    const shards = [...state.openShards.values()].map(({ rowGroups }) => 1 + rowGroups.length)
    const others = [state.secretChecks, state.queries, state.chains].map(({ size }) => size)
    const unknown = state.unknownFields.size > 0 ? 1 : 0
    const sums = state.aggregates().rows > 0 ? 1 : 0
    const counts = [
      ...runs,
      ...shards,
      ...others,
      [...state.partitions].length,
      state.shards.length,
      state.prunes.length,
      sums,
      unknown,
      Number(isMeasured),
      limits.size + Number(hasLimit),
    ]
    return counts.reduce((sum, count) => sum + count, 1)
  }

  it('describes the same state in as few lines as possible, and has all cursors that its chains have seen', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async (lines) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, lines)
        const before = await stateIn(store)
        await rewriteCheckpoint(store, before)
        const after = await stateIn(store)
        expect(plain(after)).toEqual(plain(before))
        expect(after.lines).toBe(leastLines(before))
        const cursors = cursorsOf(lines)
        expect(met(after, cursors)).toEqual(met(before, cursors))
        // Numbers of chains that have ended may be reused, those of others never.
        for (const chain of after.chains.keys()) expect(chain).toBeLessThan(after.nextChain)
      }),
      { numRuns: cases(100, 12) },
    )
  })

  it('continues as without the rewrite, at any line', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, fc.nat(), async (lines, index) => {
        const at = 1 + (index % lines.length)
        const { store } = temporaryStore()
        await writeCheckpoint(store, lines.slice(0, at))
        await rewriteCheckpoint(store, await stateIn(store))
        const checkpoint = await openCheckpoint(store, HEADER, accept)
        for (const line of lines.slice(at)) await checkpoint.append(factsOf([line]))
        await checkpoint.close()
        const uninterrupted = temporaryStore()
        await writeCheckpoint(uninterrupted.store, lines)
        const expected = await stateIn(uninterrupted.store)
        const cursors = cursorsOf(lines)
        for (const state of [checkpoint.state, await stateIn(store)]) {
          expect(plain(state)).toEqual(plain(expected))
          expect(met(state, cursors)).toEqual(met(expected, cursors))
        }
      }),
      { numRuns: cases(60, 6) },
    )
  })

  it('keeps a failure that cost no request in a run that never ended', async () => {
    const { store } = temporaryStore()
    const run = {
      kind: 'run',
      run: 'run-0',
      started_at: '2024-07-01T00:00:00.000Z',
      version: '1.0.0',
    } as const
    const error = { kind: 'data', message: 'no', rejected: 1 } as const
    const failed = { kind: 'failed', partition: 'domain.b.com/all', requests: 0, error } as const
    await writeCheckpoint(store, [HEADER, run, failed])
    await rewriteCheckpoint(store, await stateIn(store))
    expect((await stateIn(store)).runs).toMatchObject([{ run: 'run-0', failures: 1, quarantined: 1 }])
  })

  it('is the old one until the new one is complete', async () => {
    const { store, root } = temporaryStore()
    await writeCheckpoint(store, [HEADER, CHAIN, page({ next: 'a' }), page({ next: 'b' })])
    const before = readFileSync(join(root, CHECKPOINT_PATH))
    const state = await stateIn(store)
    const failure = new Error('the process has ended')
    const ending = {
      ...store,
      publish: async (): Promise<void> => {
        throw failure
      },
    }
    await expect(rewriteCheckpoint(ending, state)).rejects.toBe(failure)
    expect(readFileSync(join(root, CHECKPOINT_PATH))).toEqual(before)
    await rewriteCheckpoint(store, state)
    expect(plain(await stateIn(store))).toEqual(plain(state))
  })
})

describe('a long chain', () => {
  it('needs a few bytes of memory per page, however long its cursors are, also during a rewrite', async () => {
    const { store, root } = temporaryStore()
    const cursor = (index: number): string => `${index}-`.padEnd(20_000, 'x')
    const pages = 10_000
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    await checkpoint.append([CHAIN])
    for (let at = 0; at < pages; at += 500) {
      const pages = Array.from({ length: 500 }, (_, index) => page({ next: cursor(at + index) }))
      await Promise.all(pages.map((each) => checkpoint.append([each])))
    }
    await checkpoint.close()
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

describe('a checkpoint with many obsolete lines', () => {
  const history = (chain: number, query: string, pages: number): JournalLine[] => [
    chainOfAll(chain, query),
    ...Array.from({ length: pages }, (_, index) =>
      page({
        chain,
        next: index === pages - 1 ? null : `c${index}`,
        unknown_fields: index % 1000 === 0 ? { field: 1 } : {},
      }),
    ),
  ]
  const LONG = history(1000, 'domain.long.com', 20_000)

  it('is rewritten without them, and describes the same state', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async (lines) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, [...lines, ...LONG])
        const before = await stateIn(store)
        const checkpoint = await openCheckpoint(store, HEADER, accept)
        await checkpoint.close()
        const after = await stateIn(store)
        expect(plain(checkpoint.state)).toEqual(plain(before))
        expect(plain(after)).toEqual(plain(before))
        expect(checkpoint.state.lines).toBe(after.lines)
        expect(after.lines).toBeLessThanOrEqual(factsOf(lines).length + 30)
      }),
      { numRuns: cases(5, 1) },
    )
  })

  it('continues as without the rewrite', async () => {
    const { store } = temporaryStore()
    const piece = { window: 'all', shard: 0, rows: 1, imported_at: { min: 5, max: 5 } }
    const logged = (end: number) => [{ shard: 0, generation: 1, end, rows: 1 }]
    const open: JournalLine[] = [
      { kind: 'open', shard: 0, folder: 'credentials/a', part: 0 },
      CHAIN,
      page({ slices: [piece], logged: logged(8), next: 'a', position: { at: 5, ids: [1] } }),
      seal(1, 'credentials/b/part-00000.csv'),
    ]
    const more: JournalEntry[] = [
      page({ slices: [piece], logged: logged(16), next: 'b' }),
      seal(0, 'credentials/a/part-00000.csv', { rows: 3, partitions: [KEY] }),
      page({ slices: [piece], next: null }),
    ]
    await writeCheckpoint(store, [HEADER, ...open, ...LONG])
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    await checkpoint.append(more)
    await checkpoint.close()
    const uninterrupted = temporaryStore()
    await writeCheckpoint(uninterrupted.store, [HEADER, ...open, ...LONG, ...more])
    const found = await stateIn(store)
    expect(plain(found)).toEqual(plain(await stateIn(uninterrupted.store)))
    expect(found.partitions.get(KEY)).toMatchObject({ state: 'done', rows: 3, pages: 3 })
    expect(found.lines).toBeLessThan(20)
  })

  it('does not grow when it is rewritten repeatedly', async () => {
    const { store } = temporaryStore()
    await writeCheckpoint(store, [HEADER])
    const sizes: number[] = []
    for (let round = 0; round < cases(4, 3); round++) {
      const checkpoint = await openCheckpoint(store, HEADER, accept)
      sizes.push(checkpoint.state.lines)
      const finished = Array.from({ length: 100 }, (_, index) =>
        history(100 * round + index, `domain.d${round}-${index}.com`, 210),
      )
      // A line each.
      await Promise.all(factsOf(finished.flat()).map((fact) => checkpoint.append([fact])))
      await checkpoint.close()
    }
    expect(sizes[0]).toBe(1)
    for (const [round, lines] of sizes.entries()) expect(lines).toBeLessThan(1 + 100 * round + 10)
  })

  it('is not rewritten while most of its lines are needed', async () => {
    const { store, root } = temporaryStore()
    const partitions = Array.from({ length: 10_000 }, (_, index): JournalLine[] => [
      chainOfAll(index, `domain.d${index}.com`),
      page({ chain: index, next: null }),
    ])
    await writeCheckpoint(store, [HEADER, ...partitions.flat()])
    const before = readFileSync(join(root, CHECKPOINT_PATH))
    await (await openCheckpoint(store, HEADER, accept)).close()
    expect(readFileSync(join(root, CHECKPOINT_PATH)).equals(before)).toBe(true)
  })

  it('is rewritten also during one long chain, which loses nothing', async () => {
    const { store } = temporaryStore()
    const lines = [HEADER, ...history(7, 'domain.long.com', 20_001).slice(0, -1)]
    await writeCheckpoint(store, lines)
    const before = await stateIn(store)
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    expect(plain(checkpoint.state)).toEqual(plain(before))
    expect(checkpoint.state.lines).toBeLessThan(10)
    const chain = checkpoint.state.chains.get(7)
    expect([chain?.pages, chain?.next, chain?.seen?.size]).toEqual([20_000, 'c19999', 19_999])
    expect(cursorsOf(lines).filter((cursor) => chain?.seen?.has(cursor) !== true)).toEqual(['c19999'])
    await checkpoint.append([page({ chain: 7, next: null })])
    await checkpoint.close()
    const { chains, partitions } = await stateIn(store)
    expect(chains.size).toBe(0)
    expect(partitions.get('domain.long.com/all')).toMatchObject({ state: 'done', pages: 20_001 })
  })
})
