import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  type CheckpointState,
  type Line,
  openCheckpoint,
  type PageFacts,
  readCheckpoint,
  rewriteCheckpoint,
} from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { HEADER, plain, seal, someJournal, writeCheckpoint, writeJournal } from './lines.ts'

const accept = (): void => {}
const KEY = 'domain.acme.com/all'

function page(over: Partial<Extract<Line, { kind: 'page' }>> = {}): Line {
  return { kind: 'page', partition: KEY, next: 'n', rows: 1, requests: 1, ...over }
}

/** What a checkpoint should say about one partition, worked out anew from all its lines. */
function expectedRecord(lines: readonly Line[], key: string) {
  const own = lines.flatMap((line): Line[] => {
    if (line.kind === 'seal') return line.page?.partition === key ? [{ kind: 'page', ...line.page }] : []
    return 'partition' in line && line.partition === key ? [line] : []
  })
  const pages = own.filter((line) => line.kind === 'page') as readonly PageFacts[]
  const lastPage = own.findLastIndex((line) => line.kind === 'page')
  const lastRestart = own.findLastIndex((line) => line.kind === 'restart')
  const failure = own.slice(lastPage + 1).findLast((line) => line.kind === 'failed')
  const restart = own[lastRestart]
  const last = pages.at(-1)
  const done = last !== undefined && last.next === null
  const chain = own.slice(lastRestart + 1).filter((line) => line.kind === 'page') as readonly PageFacts[]
  const sum = (of: (facts: PageFacts) => number): number =>
    pages.reduce((total, facts) => total + of(facts), 0)
  const failed = own
    .filter((line) => line.kind === 'failed')
    .reduce((total, line) => total + line.requests, 0)
  return {
    state: done ? 'done' : failure === undefined ? 'partial' : 'failed',
    next: done || lastRestart > lastPage ? null : (last?.next ?? null),
    rows: sum(({ rows }) => rows),
    pages: pages.length,
    requests: sum(({ requests }) => requests) + failed,
    quarantined: sum(({ quarantine }) => quarantine?.items ?? 0),
    repeated: sum(({ repeated }) => repeated ?? 0),
    quarantineEnd: done
      ? 0
      : (pages.findLast(({ quarantine }) => quarantine !== undefined)?.quarantine?.end ?? 0),
    position: done ? null : (pages.findLast(({ position }) => position !== undefined)?.position ?? null),
    since: done || restart?.kind !== 'restart' ? null : restart.since,
    seen: done ? [] : chain.slice(0, -1).map(({ next }) => next),
    ids: done ? null : (pages.findLast(({ ids }) => ids !== undefined)?.ids ?? null),
    error: failure === undefined ? null : failure.error,
  }
}

function expectToBeTheSumOf(state: CheckpointState, lines: readonly Line[]): void {
  const keys = new Set<string>()
  const unknown: Record<string, number> = {}
  const shardRows = new Map<number, number>()
  for (const line of lines) {
    const facts = line.kind === 'page' ? line : line.kind === 'seal' ? line.page : undefined
    if ('partition' in line) keys.add(line.partition)
    if (facts !== undefined) {
      keys.add(facts.partition)
      for (const [name, times] of Object.entries(facts.unknown_fields ?? {}))
        unknown[name] = (unknown[name] ?? 0) + times
    }
    if (line.kind === 'page' && line.shard !== undefined)
      shardRows.set(line.shard, (shardRows.get(line.shard) ?? 0) + line.rows)
  }
  const found = [...state.partitions].map(([key]) => key)
  expect(found.toSorted()).toEqual([...keys].sort())
  for (const key of keys) {
    const { seen, ...record } = state.partitions.get(key)!
    const { seen: cursors, ...expected } = expectedRecord(lines, key)
    expect(record).toEqual(expected)
    expect(seen?.size ?? 0).toBe(cursors.length)
    for (const cursor of cursors) expect(seen?.has(cursor!)).toBe(true)
  }
  expect(Object.fromEntries(state.unknownFields)).toEqual(unknown)
  expect(state.lines).toBe(lines.length)

  const opened = lines.filter((line) => line.kind === 'open')
  const sealed = lines.filter((line) => line.kind === 'seal')
  const stillOpen = opened.filter(({ shard }) => !sealed.some((line) => line.shard === shard))
  expect([...state.openShards.keys()]).toEqual(stillOpen.map(({ shard }) => shard))
  for (const { shard, folder, part } of stillOpen) {
    const open = state.openShards.get(shard)
    expect(open).toMatchObject({ shard, folder, part })
    expect(open?.pages.reduce((rows, { rows: more }) => rows + more, 0)).toBe(shardRows.get(shard))
    expect(open?.chunks).toEqual(lines.filter((line) => line.kind === 'chunk' && line.shard === shard))
  }
  expect([...state.shards].map(({ shard }) => shard)).toEqual(sealed.map(({ shard }) => shard))
  expect(state.nextShard).toBe(Math.max(-1, ...opened.map(({ shard }) => shard)) + 1)
  for (const { folder } of opened) {
    expect(state.partsOf.get(folder)).toBe(opened.filter((line) => line.folder === folder).length)
  }
  expect(state.runs.map(({ run }) => run)).toEqual(
    lines.filter((line) => line.kind === 'run').map(({ run }) => run),
  )
}

describe('a checkpoint', () => {
  it('is the sum of its lines, whatever they are, read back or kept while they are written', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, fc.nat({ max: 60 }), async (lines, read) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, lines.slice(0, 1 + read))
        const checkpoint = await openCheckpoint(store, HEADER, accept)
        for (const line of lines.slice(1 + read)) await checkpoint.append([line])
        await checkpoint.close()
        expectToBeTheSumOf(checkpoint.state, lines)
        const again = await readCheckpoint(store)
        expect(again).not.toBeNull()
        if (again !== null) expect(plain(again)).toEqual(plain(checkpoint.state))
      }),
      { numRuns: 25 },
    )
  })

  it('is there from its first whole line on; what has none is refused and left alone', async () => {
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

  it('is not touched when what was found is refused', async () => {
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

  it('of another version is a matter of configuration, not damage', async () => {
    const { store } = temporaryStore()
    await writeJournal(store, CHECKPOINT_PATH, [{ ...HEADER, version: 2, more: true }])
    await expect(readCheckpoint(store)).rejects.toEqual(anError('config', CHECKPOINT_PATH))
    await expect(openCheckpoint(store, HEADER, accept)).rejects.toEqual(anError('config', CHECKPOINT_PATH))
  })

  it.each([
    ['lacks its header', [page()]],
    ['holds a line of no known kind', [HEADER, { kind: 'surprise' }]],
    ['holds a page with rows below zero', [HEADER, { ...page(), rows: -1 }]],
  ])('that %s is damaged', async (_, lines) => {
    const { store } = temporaryStore()
    await writeJournal(store, CHECKPOINT_PATH, lines)
    await expect(readCheckpoint(store)).rejects.toEqual(anError('damaged', CHECKPOINT_PATH))
  })

  it('counts unknown fields by any name that a service may think of', async () => {
    const { store } = temporaryStore()
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'ordinary']
    const fields = Object.fromEntries(names.map((name) => [name, 2]))
    await writeCheckpoint(store, [HEADER, page({ unknown_fields: fields }), page({ unknown_fields: fields })])
    const state = await readCheckpoint(store)
    expect(state?.unknownFields).toEqual(new Map(names.map((name) => [name, 4])))
  })

  it('keeps a finished partition finished, whatever is said about it afterwards', async () => {
    const { store } = temporaryStore()
    const error = { kind: 'data', message: 'could not be encoded' }
    await writeCheckpoint(store, [
      HEADER,
      page({ next: null }),
      { kind: 'failed', partition: KEY, requests: 0, error },
    ])
    const state = await readCheckpoint(store)
    expect(state === null ? null : state.partitions.get(KEY)?.state).toBe('done')
  })

  it('can be rewritten in one step, line by line', async () => {
    const { store } = temporaryStore()
    await writeCheckpoint(store, [HEADER, page({ next: 'a' }), page({ next: 'b' }), page({ next: 'c' })])
    await rewriteCheckpoint(
      store,
      (line) => (line.kind === 'page' && line.next === 'b' ? null : line),
      () => [page({ next: 'd' })],
    )
    const state = await readCheckpoint(store)
    const record = state?.partitions.get(KEY)
    const seen = ['a', 'b', 'c', 'd'].filter((cursor) => record?.seen?.has(cursor))
    expect([seen, record?.next, record?.pages]).toEqual([['a', 'c'], 'd', 3])
  })
})

describe('a long chain', () => {
  it('costs a few bytes a page in memory, however long its cursors are, also where it is rewritten', async () => {
    const { store, root } = temporaryStore()
    const cursor = (index: number): string => `${index}-`.padEnd(20_000, 'x')
    const pages = 10_000
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    for (let at = 0; at < pages; at += 500) {
      const lines = Array.from({ length: 500 }, (_, index) => page({ next: cursor(at + index) }))
      await checkpoint.append(lines)
    }
    await checkpoint.close()
    const { stdout } = await promisify(execFile)(process.execPath, [
      join(import.meta.dirname, 'read-a-long-chain.mjs'),
      root,
    ])
    const { mostMb, ...found } = JSON.parse(stdout)
    expect(found).toEqual({ pages, seen: pages - 1, next: 20_000 })
    // The cursors alone are 200 MB.
    expect(mostMb).toBeLessThan(220)
  })
})

describe('a checkpoint that has grown far beyond what it says', () => {
  const history = (query: string, pages: number): Line[] =>
    Array.from({ length: pages }, (_, index) =>
      page({
        partition: `${query}/all`,
        next: index === pages - 1 ? null : `c${index}`,
        unknown_fields: index % 1000 === 0 ? { field: 1 } : {},
      }),
    )

  it('is rewritten with as many lines as matter, and says the same', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async (lines) => {
        const { store } = temporaryStore()
        await writeCheckpoint(store, [...lines, ...history('domain.long.com', 20_000)])
        const before = await readCheckpoint(store)
        const checkpoint = await openCheckpoint(store, HEADER, accept)
        await checkpoint.close()
        const after = await readCheckpoint(store)
        if (before === null || after === null) throw new Error('no checkpoint')
        expect(plain(checkpoint.state)).toEqual(plain(before))
        expect(plain(after)).toEqual(plain(before))
        expect(after.lines).toBeLessThanOrEqual(lines.length + 10)
      }),
      { numRuns: 5 },
    )
  })

  it('goes on as if nothing had been rewritten', async () => {
    const { store } = temporaryStore()
    const open: Line[] = [
      { kind: 'open', shard: 0, folder: 'credentials/a', part: 0 },
      page({ shard: 0, log: { generation: 0, end: 8 }, next: 'a', position: { at: 5, ids: [1] } }),
      seal(1, 'credentials/b/part-00000.csv', {
        page: { partition: 'domain.b.com/all', next: null, rows: 2, requests: 1 },
      }),
    ]
    await writeCheckpoint(store, [HEADER, ...open, ...history('domain.long.com', 20_000)])
    const checkpoint = await openCheckpoint(store, HEADER, accept)
    const more: Line[] = [
      page({ shard: 0, log: { generation: 0, end: 16 }, next: 'b' }),
      seal(0, 'credentials/a/part-00000.csv', {
        page: { partition: KEY, next: null, rows: 2, requests: 1 },
      }),
    ]
    await checkpoint.append(more)
    await checkpoint.close()
    const uninterrupted = temporaryStore()
    await writeCheckpoint(uninterrupted.store, [
      HEADER,
      ...open,
      ...history('domain.long.com', 20_000),
      ...more,
    ])
    const [found, expected] = [await readCheckpoint(store), await readCheckpoint(uninterrupted.store)]
    if (found === null || expected === null) throw new Error('no checkpoint')
    expect(plain(found)).toEqual(plain(expected))
    expect(found.lines).toBeLessThan(20)
  })

  it('does not grow by being rewritten again and again', async () => {
    const { store } = temporaryStore()
    await writeCheckpoint(store, [HEADER])
    const sizes: number[] = []
    for (let round = 0; round < 4; round++) {
      const checkpoint = await openCheckpoint(store, HEADER, accept)
      sizes.push(checkpoint.state.lines)
      const finished = Array.from({ length: 100 }, (_, index) =>
        history(`domain.d${round}-${index}.com`, 210),
      )
      await checkpoint.append(finished.flat())
      await checkpoint.close()
    }
    expect(sizes[0]).toBe(1)
    for (const [round, lines] of sizes.entries()) expect(lines).toBeLessThan(1 + 100 * round + 10)
  })

  it('is left alone while most of its lines matter', async () => {
    const { store, root } = temporaryStore()
    const partitions = Array.from({ length: 20_000 }, (_, index) =>
      page({ partition: `domain.d${index}.com/all`, next: null }),
    )
    await writeCheckpoint(store, [HEADER, ...partitions])
    const before = readFileSync(join(root, CHECKPOINT_PATH))
    await (await openCheckpoint(store, HEADER, accept)).close()
    expect(readFileSync(join(root, CHECKPOINT_PATH)).equals(before)).toBe(true)
  })

  it('is left alone when it is one long chain that is still under way', async () => {
    const { store, root } = temporaryStore()
    await writeCheckpoint(store, [HEADER, ...history('domain.long.com', 20_001).slice(0, -1)])
    const before = readFileSync(join(root, CHECKPOINT_PATH))
    await (await openCheckpoint(store, HEADER, accept)).close()
    expect(readFileSync(join(root, CHECKPOINT_PATH)).equals(before)).toBe(true)
  })
})
