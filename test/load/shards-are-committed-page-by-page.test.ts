import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ShardEncoder } from '../../src/load/encode/encoder.ts'
import type { Commit, ShardSetOptions, Slice } from '../../src/load/index.ts'
import { beginCheckpoint, findCheckpoint, Journal, type JournalEntry } from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { newOwner, temporaryStore, write } from '../disk/temporary-store.ts'
import { HEADER } from '../state/lines.ts'
import { openBelow } from '../support/open-files.ts'
import {
  keyOf,
  openShards,
  pageLine,
  readShard,
  responsesOf,
  sliceOf,
  textEncoder,
  World,
} from './shards-world.ts'

const FOLDER = 'credentials/import_window=2024-01-01'
const CHAIN = { kind: 'chain', chain: 0, query: 'domain.acme.com', order: 'asc', windows: null } as const
const SHARED = { rowGroupRows: 10, shardRows: 100, owned: false }

type Recorder = (entries: readonly JournalEntry[], blobs: readonly Uint8Array[]) => void | Promise<void>

/** The shards of a new data set. @param record gets each commit before it is made */
async function shardSet({
  record = () => {},
  ...over
}: Partial<Parameters<typeof openShards>[0]> & { record?: Recorder }) {
  const { store: unowned, root } = temporaryStore()
  const store = await unowned.own(newOwner())
  await beginCheckpoint(store, HEADER)
  const journal = (await Journal.open(store, (await findCheckpoint(store))!))!
  await journal.append([CHAIN])
  const log: ShardSetOptions['log'] = {
    state: journal.state,
    read: (ref) => journal.read(ref),
    async commit(entries, blobs = []) {
      await record(entries, blobs)
      return journal.commit(entries, blobs)
    },
  }
  return { store, root, shards: await openShards({ store, log, ...over }), journal }
}

/** A page of a chain with these rows. */
function commitOf(slices: readonly Slice[], over: Partial<Commit> = {}): Commit {
  const entries: Commit['entries'] = (placement) => [{ ...pageLine(0, 'more'), ...placement }]
  return { slices, close: [], entries, blobs: [], ...over }
}

it('no two shards have one number, also where one that is committed came from elsewhere', async () => {
  const opened: number[] = []
  const { shards, journal } = await shardSet({
    record: (entries) => void opened.push(...entries.flatMap((e) => (e.kind === 'open' ? [e.shard] : []))),
  })
  await shards.commit(commitOf(sliceOf(0, FOLDER, 1)))
  await journal.append([{ kind: 'open', shard: 6, folder: 'elsewhere', part: 0 }])
  await shards.commit(commitOf(sliceOf(0, `${FOLDER}-more`, 1)))
  await shards.commit(commitOf(sliceOf(0, `${FOLDER}-most`, 1)))
  expect(opened).toEqual([0, 7, 8])
  await shards.close()
})

it('rows of what is exported again wait in shards of their own, and others of their folder do not wait', async () => {
  const { shards, journal } = await shardSet({ shardRows: 3 })
  await journal.append([
    { kind: 'redo', partitions: [keyOf(0, 0)], chains: [] },
    ...[0, 1].map((query) => ({ ...CHAIN, chain: 1 + query, query: keyOf(query, 0).split('/')[0]! })),
  ])
  for (const query of [0, 1, 0, 1])
    await shards.commit({
      ...commitOf(sliceOf(query, FOLDER, 2)),
      entries: (placement) => [{ ...pageLine(1 + query, 'more'), ...placement }],
    })
  await shards.seal(shards.openFolders)
  await shards.close()
  expect([...journal.state.shards].map(({ rows }) => rows)).toEqual([3, 1])
  const waiting = [...journal.state.openShards.values()].map(({ batches }) => batches.map(({ rows }) => rows))
  expect(waiting).toEqual([[2, 1], [1]])
})

describe('a commit', () => {
  it('comes after the shards that it names, which get their names after it', async () => {
    const kinds: string[] = []
    const { store, root, shards } = await shardSet({
      rowGroupRows: 100,
      shardRows: 300,
      record(lines) {
        kinds.push(lines.map(({ kind }) => kind).join(' '))
        for (const line of lines) {
          if (line.kind !== 'seal') continue
          // Until then a crash leaves no shard that is not on record.
          expect(existsSync(join(root, line.path))).toBe(false)
          const bytes = readFileSync(join(root, `_state/sealed/${line.shard}.${line.sha256.slice(0, 16)}`))
          expect(bytes.length).toBe(line.bytes)
          expect(createHash('sha256').update(bytes).digest('hex')).toBe(line.sha256)
        }
      },
    })
    for (const rows of [60, 70, 0, 80, 190, 700]) {
      await shards.commit(commitOf(sliceOf(0, FOLDER, rows)))
      await shards.settled()
    }
    await shards.seal([FOLDER])
    await shards.close()
    const second = ['open page', 'seal']
    const rest = ['open open page', 'seal', 'seal', 'seal']
    expect(kinds).toEqual(['open page', 'page', 'page', 'page', ...second, ...rest])
    expect(await store.list(FOLDER)).toEqual([0, 1, 2, 3].map((part) => `part-0000${part}.csv`))
    expect(await store.list('_state/sealed')).toEqual([])
  })

  it('that fails publishes none of the shards in it', async () => {
    const folders = ['a', 'b', 'c'].map((name) => `credentials/${name}`)
    let seals = 0
    const { root, shards } = await shardSet({
      async record(lines) {
        if (!lines.some(({ kind }) => kind === 'seal')) return
        if (++seals > 1) throw new Error('the disk is full')
      },
    })
    for (const folder of folders) await shards.commit(commitOf(sliceOf(0, folder, 3)))
    await shards.seal(folders.slice(0, 1))
    await expect(shards.seal(folders.slice(1))).rejects.toThrow('the disk is full')
    await shards.close()
    const published = folders.filter((folder) => existsSync(join(root, folder, 'part-00000.csv')))
    expect(published).toHaveLength(1)
  })
})

describe('a shard that has ended', () => {
  it('is written behind the commits; the next one that ends waits for it', async () => {
    const pages: number[] = []
    let isAllowed = false
    const encoder: ShardEncoder = {
      ...textEncoder,
      async encode(recordBatches) {
        while (!isAllowed) await turn()
        return textEncoder.encode(recordBatches)
      },
    }
    const record: Recorder = (entries) =>
      void pages.push(...entries.flatMap(({ kind }, i) => (kind === 'page' ? [i] : [])))
    const { store, shards } = await shardSet({ encoder, shardRows: 10, record })
    const done: number[] = []
    const commits = [5, 5, 10, 5].map(async (rows, page) => {
      await shards.commit(commitOf(sliceOf(page, FOLDER, rows)))
      done.push(page)
    })
    while (done.length < 3) await turn()
    for (let turns = 0; turns < 50; turns++) await turn()
    // All are in the log.
    expect(pages).toHaveLength(4)
    expect(done.toSorted()).toEqual([0, 1, 3])
    isAllowed = true
    await Promise.all(commits)
    await shards.seal([FOLDER])
    const queriesOf = async (part: number): Promise<Set<number>> => {
      const text = Buffer.from((await store.read(`${FOLDER}/part-0000${part}.csv`)) ?? []).toString()
      return new Set(readShard(text, 100_000).map(({ query }) => query))
    }
    expect(await Promise.all([0, 1, 2].map(queriesOf))).toEqual([new Set([0, 1]), new Set([2]), new Set([3])])
    await shards.close()
  })

  it.skipIf(process.platform !== 'linux')(
    'has one of few open files, and leaves none if it fails',
    async () => {
      let most = 0
      const encoder: ShardEncoder = {
        ...textEncoder,
        async encode(recordBatches) {
          for (let turns = 0; turns < 5; turns++) await turn()
          most = Math.max(most, openBelow(root).length)
          return textEncoder.encode(recordBatches)
        },
        footer: failingAt(150, textEncoder.footer),
      }
      const folders = Array.from({ length: 200 }, (_, at) => `${FOLDER}-${at}`)
      const { store, root, shards } = await shardSet({ encoder })
      await shards.commit(commitOf(folders.flatMap((folder) => sliceOf(0, folder, 1))))
      await expect(shards.seal(folders)).rejects.toThrow('the disk is full')
      await shards.close()
      expect(most).toBeGreaterThan(10)
      expect(most).toBeLessThanOrEqual(40)
      expect(openBelow(root)).toEqual([])
      expect(await store.list('_state/sealed')).toEqual([])
    },
  )

  it.each(['encode', 'footer'] as const)('loses nothing when %s fails behind the commits', async (name) => {
    const responses = [responsesOf('credentials/a', 4, 5, 6, 7, 30), responsesOf('credentials/b', 9, 9, 9)]
    for (const at of [1, 2, 3]) {
      const encoder = { ...textEncoder, [name]: failingAt<never[], unknown>(at, textEncoder[name]) }
      const options = { rowGroupRows: 5, shardRows: 12, owned: false }
      const world = new World(responses, { ...options, encoder })
      await world.open()
      await expect(world.finish()).rejects.toThrow('the disk is full')
      await world.close()
      world.options = options
      await world.open()
      expect(world.invalidated).toEqual([])
      await world.finish()
      await world.expectComplete()
    }
  })

  it('is not named if it lacks rows', async () => {
    for (const pages of [[5, 5], [10]]) {
      const kinds: string[] = []
      const { store, shards } = await shardSet({
        encoder: { ...textEncoder, encode: async (batches) => losingRow(await textEncoder.encode(batches)) },
        record: (lines) => void kinds.push(...lines.map(({ kind }) => kind)),
      })
      const work = async (): Promise<void> => {
        for (const [index, rows] of pages.entries()) {
          const close = index === pages.length - 1 ? [FOLDER] : []
          await shards.commit(commitOf(sliceOf(0, FOLDER, rows), { close }))
        }
        await shards.settled()
      }
      await expect(work()).rejects.toEqual(anError('damaged', `${FOLDER}, part 0`))
      await shards.close()
      expect(kinds).not.toContain('seal')
      expect(await store.list(FOLDER)).toEqual([])
      expect(await store.list('_state/sealed')).toEqual([])
    }
  })
})

it('an unknown file is removed from among the sealed shards if its name is that of one', async () => {
  const world = new World([responsesOf(FOLDER, 1, 2, 3)], SHARED)
  await world.open()
  await world.commitNext(0)
  await world.close()
  for (const name of ['7.0123456789abcdef', '0.0123456789abcdef', 'x'])
    await write(world.store, `_state/sealed/${name}`, 'left')
  await world.open()
  expect(await world.store.list('_state/sealed')).toEqual(['x'])
  await world.own!.remove('_state/sealed/x')
  await world.finish()
  await world.expectComplete()
})

/** Work whose n-th call fails. */
function failingAt<Args extends unknown[], T>(
  n: number,
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let calls = 0
  return (...args) => (++calls === n ? Promise.reject(new Error('the disk is full')) : work(...args))
}

function losingRow<T extends { readonly rows: number }>(encoded: T): T {
  return { ...encoded, rows: encoded.rows - 1 }
}
