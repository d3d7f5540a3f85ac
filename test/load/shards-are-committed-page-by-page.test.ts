import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import type { ShardEncoder } from '../../src/load/encode/encoder.ts'
import type { Commit, ShardSet, ShardSetOptions, Slice } from '../../src/load/index.ts'
import type { CommitLog, JournalEntry } from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { newOwner, temporaryStore, write } from '../disk/temporary-store.ts'
import { openBelow } from '../support/open-files.ts'
import {
  coderOf,
  pageLine,
  readShard,
  responsesOf,
  sliceOf,
  soundShards,
  textEncoder,
  World,
} from './shards-world.ts'

const FOLDER = 'credentials/import_window=2024-01-01'
const SHARED = { rowGroupRows: 10, shardRows: 100, owned: false }

type Recorder = (entries: readonly JournalEntry[], blobs: readonly Uint8Array[]) => void | Promise<void>

/** A log in memory. @param record gets each commit before it is made */
function logOf(record: Recorder): CommitLog {
  const objects: Uint8Array<ArrayBuffer>[][] = []
  return {
    async commit(entries, blobs = []) {
      await record(entries, blobs)
      const file = objects.push(blobs.map((blob) => new Uint8Array(blob)))
      return blobs.map(({ byteLength }, offset) => ({ file, offset, bytes: byteLength, crc: 0 }))
    },
    read: async ({ file, offset }) => objects[file - 1]?.[offset] ?? null,
  }
}

function shardSet(
  store: OwnedStore,
  { record = () => {}, ...over }: Partial<ShardSetOptions> & { record?: Recorder },
): Promise<ShardSet> {
  return soundShards({ store, log: logOf(record), ...over })
}

async function ownStore(): Promise<{ readonly store: OwnedStore; readonly root: string }> {
  const { store, root } = temporaryStore()
  return { store: await store.own(newOwner()), root }
}

/** A page of a chain with these rows. */
function commitOf(slices: readonly Slice[], over: Partial<Commit> = {}): Commit {
  const entries: Commit['entries'] = (placement) => [{ ...pageLine(0, 'more'), ...placement }]
  return { slices, close: [], entries, blobs: [], ...over }
}

it('no two shards have one number, also where one that is committed came from elsewhere', async () => {
  const { store } = await ownStore()
  let next = 3
  const opened: number[] = []
  const set = await shardSet(store, {
    nextShard: () => next,
    record: (entries) => void opened.push(...entries.flatMap((e) => (e.kind === 'open' ? [e.shard] : []))),
  })
  await set.commit(commitOf(sliceOf(0, FOLDER, 1)))
  next = 7
  await set.commit(commitOf(sliceOf(0, `${FOLDER}-more`, 1)))
  await set.commit(commitOf(sliceOf(0, `${FOLDER}-most`, 1)))
  expect(opened).toEqual([3, 7, 8])
  await set.close()
})

describe('a commit', () => {
  it('comes after the shards that it names, which get their names after it', async () => {
    const { store, root } = await ownStore()
    const kinds: string[][] = []
    const shards = await shardSet(store, {
      rowGroupRows: 100,
      shardRows: 300,
      record(lines) {
        kinds.push(lines.map(({ kind }) => kind))
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
    expect(kinds).toEqual([
      ['open', 'page'],
      ['page'],
      ['page'],
      ['page'],
      ['open', 'page'],
      ['seal'],
      // The second is filled from the log; the third comes with its page.
      ['seal', 'open', 'page'],
      ['seal'],
      ['seal'],
    ])
    expect(await store.list(FOLDER)).toEqual([0, 1, 2, 3].map((part) => `part-0000${part}.csv`))
    expect(await store.list('_state/sealed')).toEqual([])
  })

  it('that fails publishes none of the shards in it', async () => {
    const { store, root } = await ownStore()
    const folders = ['a', 'b', 'c'].map((name) => `credentials/${name}`)
    let seals = 0
    const shards = await shardSet(store, {
      async record(lines) {
        if (!lines.some(({ kind }) => kind === 'seal')) return
        if (++seals > 1) throw new Error('the disk is full')
      },
    })
    for (const folder of folders) await shards.commit(commitOf(sliceOf(0, folder, 3)))
    await shards.seal(folders.slice(0, 1))
    // The others come together.
    await expect(shards.seal(folders.slice(1))).rejects.toThrow('the disk is full')
    await shards.close()
    const published = folders.filter((folder) => existsSync(join(root, folder, 'part-00000.csv')))
    expect(published).toHaveLength(1)
  })
})

describe('a row group', () => {
  it('is encoded behind the commits, which wait while three of them wait', async () => {
    const { store } = await ownStore()
    let begun = 0
    let allowed = 0
    const coder = coderOf({
      ...textEncoder,
      async encode(recordBatches) {
        for (const number = ++begun; number > allowed; ) await turn()
        return textEncoder.encode(recordBatches)
      },
    })
    const shards = await shardSet(store, { coder, rowGroupRows: 10 })
    const done: number[] = []
    const pages = Array.from({ length: 8 }, async (_, page) => {
      await shards.commit(commitOf(sliceOf(page, FOLDER, page === 2 ? 25 : 5)))
      done.push(page)
    })
    const settle = async (count: number): Promise<void> => {
      while (done.length < count) await turn()
      for (let turns = 0; turns < 50; turns++) await turn()
    }
    await settle(3)
    // 35 rows: three row groups, of which one is being encoded. All later pages wait, though they fill none.
    expect(done).toEqual([0, 1, 2])
    allowed = 1
    await settle(4)
    // 45 rows.
    expect(done).toEqual([0, 1, 2, 3])
    allowed = 2
    await settle(6)
    expect(done).toEqual([0, 1, 2, 3, 4, 5])
    expect(begun).toBe(3)
    allowed = Number.POSITIVE_INFINITY
    await Promise.all(pages)
    await shards.seal([FOLDER])
    const text = Buffer.from((await store.read(`${FOLDER}/part-00000.csv`)) ?? []).toString()
    expect(readShard(text, 10).map(({ query }) => query)).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7].flatMap((query) => Array.from({ length: query === 2 ? 25 : 5 }, () => query)),
    )
    await shards.close()
  })

  const FAILURES: readonly (readonly [string, (n: number) => Partial<ShardEncoder>])[] = [
    ['encoding', (n) => ({ encode: failingAt(n, textEncoder.encode) })],
    ['the end of a shard', (n) => ({ footer: failingAt(n, textEncoder.footer) })],
  ]

  it.each(FAILURES)('loses nothing when %s fails behind the commits', async (_, failing) => {
    const responses = [responsesOf('credentials/a', 4, 5, 6, 7, 30), responsesOf('credentials/b', 9, 9, 9)]
    for (const at of [1, 2, 3]) {
      const coder = coderOf({ ...textEncoder, ...failing(at) })
      const options = { rowGroupRows: 5, shardRows: 12, owned: false }
      const world = new World(responses, { ...options, coder })
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

  it('that lacks rows is never in a shard', async () => {
    const { store } = await ownStore()
    const kinds: string[] = []
    for (const pages of [[5, 5], [10]]) {
      const shards = await shardSet(store, {
        coder: coderOf({
          ...textEncoder,
          encode: async (batches) => losingRow(await textEncoder.encode(batches)),
        }),
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
    }
    expect(kinds).not.toContain('seal')
    expect(await store.list(FOLDER)).toEqual([])
    expect(await store.list('_state/sealed')).toEqual([])
  })
})

describe('an unknown file', () => {
  it('is removed from among the sealed shards if its name is that of one', async () => {
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
})

it.skipIf(process.platform !== 'linux')('closes its files when a shard cannot be sealed', async () => {
  const { store, root } = await ownStore()
  // Too large for memory.
  const coder = coderOf({ ...textEncoder, header: () => Buffer.alloc(2 << 20) })
  const full = (): Promise<never> => Promise.reject(new Error('the disk is full'))
  for (const close of [[], [FOLDER]]) {
    const shards = await shardSet(store, {
      coder,
      rowGroupRows: 5,
      record: close.length > 0 ? full : () => {},
    })
    const commit = shards.commit(commitOf(sliceOf(0, FOLDER, 7), { close }))
    if (close.length > 0) await expect(commit).rejects.toThrow('the disk is full')
    else await commit.then(() => shards.settled())
    if (close.length === 0) expect(openBelow(root)).toHaveLength(1)
    await shards.close()
    expect(openBelow(root)).toEqual([])
  }
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
