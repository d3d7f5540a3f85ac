import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { JournalEntry, JournalWriter, Log, PageEntry, Store } from '../../src/core/index.ts'
import { type Commit, ShardSet, type ShardSetOptions, type Slice } from '../../src/load/index.ts'
import { readCheckpoint } from '../../src/state/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import {
  keyOf,
  pageLine,
  type Responses,
  type Row,
  readShard,
  responsesOf,
  rowGroupsOf,
  sliceOf,
  slicesOf,
  textCoder,
  World,
} from './shards-world.ts'

const FOLDER = 'credentials/import_window=2024-01-01'
const SHARED = { rowGroupRows: 10, shardRows: 100, owned: false }

/** @param record gets the entries of each commit */
function shardSet(
  store: Store,
  { record = async () => {}, ...over }: Partial<ShardSetOptions> & { record?: JournalWriter['append'] },
): ShardSet {
  return new ShardSet({
    store,
    coder: textCoder,
    extension: '.csv',
    rowGroupRows: 100_000,
    shardRows: 1_000_000,
    journal: { append: record },
    nextShard: 0,
    partsOf: () => 0,
    held: new Map(),
    warn: () => {},
    onPublished: () => {},
    ...over,
  })
}

/** A page of a chain with these rows. */
function commitOf(slices: readonly Slice[], over: Partial<Commit> = {}): Commit {
  return { slices, close: [], entries: [pageLine(0, 'more')], ...over }
}

function pagesIn(lines: readonly { readonly kind: string }[]): PageEntry[] {
  return lines.filter((line): line is PageEntry => line.kind === 'page')
}

/** How many rows each shard has, by the end of its path. */
function rowsIn(world: World): Record<string, number> {
  const { rowGroupRows } = world.options
  return Object.fromEntries(
    [...world.files()].map(([path, text]) => [
      path.slice('credentials/'.length),
      readShard(text, rowGroupRows).length,
    ]),
  )
}

describe('a shard', () => {
  it('has exactly shard_rows rows, also in the middle of a page, and the last one the rest', async () => {
    const world = new World([responsesOf('credentials', 40, 50, 10, 99, 1, 250, 3)], SHARED)
    await world.open()
    await world.finish()
    expect(rowsIn(world)).toEqual({
      'part-00000.csv': 100,
      'part-00001.csv': 100,
      'part-00002.csv': 100,
      'part-00003.csv': 100,
      'part-00004.csv': 53,
    })
    expect(world.published.sort()).toEqual([...world.files().keys()].sort())
    await world.expectComplete()
  })

  it('is closed with the page that its one window ends with', async () => {
    const responses: Responses = {
      folders: ['credentials/a', 'credentials/b'],
      pages: [[0, 0], [0, 1, 1], [], [1]],
    }
    const world = new World([responses], { ...SHARED, owned: true })
    await world.open()
    await world.commitNext(0)
    expect(world.files().size).toBe(0)
    await world.commitNext(0)
    expect(rowsIn(world)).toEqual({ 'a/part-00000.csv': 3 })
    await world.commitNext(0)
    await world.commitNext(0)
    expect(rowsIn(world)).toEqual({ 'a/part-00000.csv': 3, 'b/part-00000.csv': 3 })
    await world.close()
    await world.expectComplete()
  })

  it('is closed with a last page that has no rows', async () => {
    const world = new World([responsesOf(FOLDER, 4, 5, 0)], { ...SHARED, owned: true })
    await world.open()
    await world.commitNext(0)
    await world.commitNext(0)
    expect(world.files().size).toBe(0)
    await world.commitNext(0)
    expect(world.files().size).toBe(1)
    await world.close()
    await world.expectComplete()
  })

  it('is not written for a query without rows', async () => {
    for (const owned of [true, false]) {
      const world = new World([responsesOf(FOLDER, 0, 0)], { ...SHARED, owned })
      await world.open()
      await world.finish()
      await world.expectComplete()
      expect(world.files().size).toBe(0)
    }
  })

  it('without rows has the columns, and no shard is left open', async () => {
    const { store } = temporaryStore()
    const lines: JournalEntry[] = []
    const published: string[] = []
    const shards = shardSet(store, {
      record: async (more) => void lines.push(...more),
      onPublished: ({ path }) => void published.push(path),
    })
    await shards.sealEmpty(FOLDER, keyOf(0, 0))
    expect(published).toEqual([`${FOLDER}/part-00000.csv`])
    expect(shards.openFolders).toEqual([])
    await shards.close()
    expect(lines).toMatchObject([
      {
        kind: 'seal',
        path: `${FOLDER}/part-00000.csv`,
        rows: 0,
        partitions: [keyOf(0, 0)],
        imported_at: null,
      },
    ])
    const text = Buffer.from((await store.read(`${FOLDER}/part-00000.csv`)) ?? []).toString()
    expect(text).toBe('a shard\n#[]\n')
    expect(await store.list('_state/open')).toEqual([])
  })

  it('has a row group for every row_group_rows rows, and the rest in the last one', async () => {
    const world = new World([responsesOf(FOLDER, 60, 50, 99, 1, 5, 120)], {
      rowGroupRows: 100,
      shardRows: 250,
      owned: false,
    })
    await world.open()
    await world.finish()
    const rowGroups = [...world.files().values()].map((text) => rowGroupsOf(text).map(({ rows }) => rows))
    expect(rowGroups).toEqual([[100, 100, 50], [85]])
    await world.expectComplete()
  })

  it('gets the pages of many chains that commit concurrently, each once and each in its own order', async () => {
    const responses = Array.from({ length: 12 }, (_, query) => responsesOf(FOLDER, query, 7, 30, 2))
    const world = new World(responses, SHARED)
    await world.open()
    await Promise.all(
      responses.map(async (_, query) => {
        while (await world.commitNext(query));
      }),
    )
    await world.finish()
    await world.expectComplete()
    expect(world.files().size).toBe(Math.ceil((66 + 12 * 39) / 100))
  })

  it('is open beside those of other folders', async () => {
    const responses = ['a', 'b', 'c'].map((name) => responsesOf(`credentials/query=${name}`, 1, 2, 3))
    const world = new World(responses, { ...SHARED, owned: true })
    await world.open()
    for (const query of [0, 1, 2, 0, 1, 2]) await world.commitNext(query)
    expect(world.shards?.openFolders.toSorted()).toEqual(responses.flatMap(({ folders }) => folders))
    await world.finish()
    await world.expectComplete()
    expect([...world.files().keys()]).toEqual(
      responses.flatMap(({ folders }) => `${folders[0]}/part-00000.csv`),
    )
  })
})

describe('a page', () => {
  /** Rows of three windows in two folders, mixed. */
  const rows = Array.from({ length: 60 }, (_, row): Row => ({ query: 0, window: row % 3, row }))
  const folderOf = ({ window }: Row): string => `credentials/${window === 1 ? 'b' : 'a'}`

  it('is one journal entry, with all folders and shards of its rows', async () => {
    const { store, root } = temporaryStore()
    const records: (readonly JournalEntry[])[] = []
    const shards = shardSet(store, {
      rowGroupRows: 10,
      shardRows: 15,
      record: async (lines) => void records.push(lines),
    })
    await shards.commit(commitOf(slicesOf(rows, folderOf)))
    expect(records).toHaveLength(1)
    // Forty rows for one folder, twenty for the other: row groups of whole shards are in these.
    expect(records[0]!.map(({ kind }) => kind).toSorted()).toEqual(
      ['seal', 'seal', 'open', 'row-group', 'seal', 'open', 'aggregates', 'page'].toSorted(),
    )
    expect(records[0]!.at(-1)?.kind).toBe('page')
    const seals = records[0]!.flatMap((line) => (line.kind === 'seal' ? [line.path] : []))
    expect(seals.toSorted()).toEqual(
      ['a/part-00000.csv', 'a/part-00001.csv', 'b/part-00000.csv'].map((name) => `credentials/${name}`),
    )
    for (const path of seals) expect(existsSync(join(root, path))).toBe(true)
    await shards.close()
  })

  it('has the locations of its rows: by window and shard, and those that wait for their row group', async () => {
    const { store } = temporaryStore()
    const records: JournalEntry[] = []
    const shards = shardSet(store, {
      rowGroupRows: 15,
      shardRows: 1000,
      record: async (lines) => void records.push(...lines),
    })
    await shards.commit(commitOf(slicesOf(rows, folderOf)))
    await shards.close()
    const folders = new Map(
      records.flatMap((line) => (line.kind === 'open' ? [[line.shard, line.folder]] : [])),
    )
    const [{ slices = [], logged = [] } = {}] = pagesIn(records)
    for (const window of [0, 1, 2]) {
      const own = slices.filter((piece) => piece.window === keyOf(0, window).split('/')[1])
      expect(own.reduce((sum, piece) => sum + piece.rows, 0)).toBe(20)
      for (const { shard } of own)
        expect(folders.get(shard)).toBe(window === 1 ? 'credentials/b' : 'credentials/a')
      const times = own.flatMap(({ imported_at }) => [Number(imported_at?.min), Number(imported_at?.max)])
      const start = Date.UTC(2024, 0, 1 + window) * 1000
      expect([Math.min(...times), Math.max(...times)]).toEqual([start + window, start + window + 57])
    }
    const waiting = logged.map(({ shard, rows }) => [folders.get(shard), rows])
    expect(waiting.toSorted()).toEqual([
      ['credentials/a', 10],
      ['credentials/b', 5],
    ])
    const rowGroups = records.flatMap((line) =>
      line.kind === 'row-group' ? [[folders.get(line.shard), line.rows]] : [],
    )
    expect(rowGroups.toSorted()).toEqual([
      ['credentials/a', 15],
      ['credentials/a', 15],
      ['credentials/b', 15],
    ])
  })

  it('without rows is in the journal as well', async () => {
    const { store } = temporaryStore()
    const records: JournalEntry[] = []
    const shards = shardSet(store, {
      record: async (lines) => void records.push(...lines),
    })
    await shards.commit(commitOf([]))
    await shards.close()
    expect(records).toEqual([pageLine(0, 'more')])
    expect(await store.list('_state/open')).toEqual([])
  })
})

describe('a journal entry', () => {
  it('is appended after an fsync of its data: rows of a page, bytes of a row group, a whole shard', async () => {
    const { store, root } = temporaryStore()
    const kinds: string[][] = []
    let parts = 0
    const shards = shardSet(store, {
      rowGroupRows: 100,
      shardRows: 300,
      partsOf: () => parts,
      record: async (more) => {
        const lines = more
        kinds.push(lines.map(({ kind }) => kind))
        for (const line of lines) if (line.kind === 'open') parts = line.part + 1
        for (const { shard, generation, end } of pagesIn(lines).flatMap(({ logged = [] }) => logged)) {
          expect(statSync(join(root, `_state/open/${shard}.${generation % 2}.log`)).size).toBe(end)
        }
        for (const line of lines) {
          if (line.kind === 'row-group' && line === lines.findLast(({ kind }) => kind === 'row-group')) {
            expect(statSync(join(root, `_state/open/${line.shard}.part`)).size).toBe(line.offset + line.bytes)
          } else if (line.kind === 'seal') {
            // The final name comes after the entry: until then a crash leaves no shard that is not in the journal.
            expect(existsSync(join(root, line.path))).toBe(false)
            const bytes = readFileSync(join(root, `_state/open/${line.shard}.part`))
            expect(bytes.length).toBe(line.bytes)
            expect(createHash('sha256').update(bytes).digest('hex')).toBe(line.sha256)
          }
        }
      },
    })
    for (const rows of [60, 70, 0, 80, 190]) await shards.commit(commitOf(sliceOf(0, FOLDER, rows)))
    await shards.seal([FOLDER])
    await shards.close()
    expect(kinds).toEqual([
      ['open', 'page'],
      ['row-group', 'page'],
      ['page'],
      ['row-group', 'page'],
      ['seal', 'open', 'row-group', 'aggregates', 'page'],
      ['seal', 'aggregates'],
    ])
    expect(await store.list(FOLDER)).toEqual(['part-00000.csv', 'part-00001.csv'])
    expect(await store.list('_state/open')).toEqual([])
  })

  it('never names rows that a later page overwrites', async () => {
    const { store } = temporaryStore()
    let onRecord = new Map<string, Buffer>()
    const named = new Map<string, number>()
    const shards = shardSet(
      {
        ...store,
        async openLog(path, size) {
          // What is in the journal of a log is still there, until the record says something else.
          expect(size).toBeGreaterThanOrEqual(named.get(path) ?? 0)
          return store.openLog(path, size)
        },
      },
      {
        rowGroupRows: 10,
        record: async (more) => {
          const lines = more
          for (const [path, bytes] of onRecord) {
            const found = Buffer.from((await store.read(path)) ?? [])
            expect(Buffer.compare(found.subarray(0, bytes.length), bytes)).toBe(0)
          }
          if (lines.some(({ kind }) => kind === 'row-group')) named.clear()
          for (const { shard, generation, end } of pagesIn(lines).flatMap(({ logged = [] }) => logged)) {
            named.set(`_state/open/${shard}.${generation % 2}.log`, end)
          }
          onRecord = new Map()
          for (const [path, end] of named) {
            onRecord.set(path, Buffer.from((await store.read(path)) ?? []).subarray(0, end))
          }
        },
      },
    )
    for (const rows of [4, 4, 4, 10, 1, 7, 25, 8, 9, 3])
      await shards.commit(commitOf(sliceOf(0, FOLDER, rows)))
    expect(onRecord.size).toBe(1)
    await shards.close()
  })

  it('shares an fsync: pages of one folder that wait for another are committed together', async () => {
    const { store } = temporaryStore()
    let flushes = 0
    const records: number[] = []
    const counting: Store = {
      ...store,
      async openLog(path, size) {
        const log = await store.openLog(path, size)
        const flush = (): Promise<void> => {
          flushes++
          return log.fsync()
        }
        return Object.assign(Object.create(log), { fsync: flush })
      },
    }
    const late: Promise<void>[] = []
    const commit = (query: number) => shards.commit(commitOf(sliceOf(query, FOLDER, 3)))
    const shards = shardSet(counting, {
      record: async (lines) => {
        records.push(pagesIn(lines).length)
        if (records.length === 1) for (let query = 1; query < 5; query++) late.push(commit(query))
      },
    })
    await commit(0)
    await Promise.all(late)
    await shards.close()
    expect(records).toEqual([1, 4])
    expect(flushes).toBe(2)
  })

  it('that fails stops the folder, and a later run resumes from the journal', async () => {
    const responses = responsesOf(FOLDER, 60, 70, 10, 80, 100)
    for (let failing = 1; failing <= 6; failing++) {
      const world = new World([responses], { rowGroupRows: 100, shardRows: 300, owned: false })
      await world.open()
      const { checkpoint } = world
      if (checkpoint === null) throw new Error('not open')
      const append = checkpoint.append.bind(checkpoint)
      let records = 0
      Object.assign(checkpoint, {
        append: (lines: Parameters<typeof append>[0]) =>
          ++records >= failing ? Promise.reject(new Error('the disk is full')) : append(lines),
      })
      await expect(world.finish()).rejects.toThrow('the disk is full')
      await expect(world.shards?.commit(commitOf(sliceOf(0, FOLDER, 1)))).rejects.toThrow('the disk is full')
      expect(records).toBe(failing)
      expect(world.pagesOf(0)).toBe(failing - 1)
      await world.close()
      await world.open()
      expect(world.invalidated).toEqual([])
      await world.finish()
      await world.expectComplete()
    }
  })

  it('writes nothing more once it has failed', async () => {
    const { store } = temporaryStore()
    let underway = 0
    const failing: Store = {
      ...store,
      async openLog(path, size) {
        underway++
        // The row group fails long before the log of the rows after it is written.
        if (path.endsWith('.log')) for (let turns = 0; turns < 20; turns++) await turn()
        const log = await store.openLog(path, size).finally(() => underway--)
        const flush = (): Promise<void> =>
          path.endsWith('.part') ? Promise.reject(new Error('the disk is full')) : log.fsync()
        return Object.assign(Object.create(log) as Log, { fsync: flush })
      },
    }
    const shards = shardSet(failing, { rowGroupRows: 5 })
    await expect(shards.commit(commitOf(sliceOf(0, FOLDER, 7)))).rejects.toThrow('the disk is full')
    expect(underway).toBe(0)
    await shards.close()
  })

  it('in one folder does not stop another when it fails', async () => {
    const { store } = temporaryStore()
    const shards = shardSet(store, {
      record: async (lines) => {
        if (lines.some((line) => line.kind === 'open' && line.folder.endsWith('b')))
          throw new Error('refused')
      },
    })
    const commit = (name: string) => shards.commit(commitOf(sliceOf(0, `credentials/query=${name}`, 5)))
    await expect(commit('b')).rejects.toThrow('refused')
    await commit('a')
    await expect(commit('b')).rejects.toThrow('refused')
    await commit('a')
    await shards.close()
  })
})

describe('a great many folders', () => {
  const folders = Array.from({ length: 150 }, (_, number) => `credentials/query=${number}`)

  it.skipIf(process.platform !== 'linux')('hold few files open', async () => {
    const responses = folders.map((folder) => responsesOf(folder, 3, 9, 4))
    const world = new World(responses, { rowGroupRows: 10, shardRows: 1000, owned: false })
    await world.open()
    let most = 0
    await world.commitInTurns(() => {
      most = Math.max(most, openFiles(join(world.root, '_state/open')).length)
    })
    // The log and the part of each active shard.
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(2 * 65)
    await world.finish()
    await world.expectComplete()
  })

  it('are also written while their files are being closed', async () => {
    const { store } = temporaryStore()
    const late: Promise<void>[] = []
    let logs = 0
    const slow: Store = {
      ...store,
      async openLog(path, size) {
        const log = await store.openLog(path, size)
        if (++logs > 1) return log
        // A page for the first folder comes just when the files of its shard are to be closed.
        const close = async (): Promise<void> => {
          const closed = log.close()
          if (late.length === 0) late.push(shards.commit(commitOf(sliceOf(1, folders[0]!, 2))))
          for (let turns = 0; turns < 20; turns++) await turn()
          await closed
        }
        return Object.assign(Object.create(log) as Log, { close })
      },
    }
    const shards = shardSet(slow, {})
    for (const folder of folders.slice(0, 70)) await shards.commit(commitOf(sliceOf(0, folder, 3)))
    expect(late).toHaveLength(1)
    await Promise.all(late)
    await shards.seal([folders[0]!])
    await shards.close()
    const text = Buffer.from((await store.read(`${folders[0]}/part-00000.csv`)) ?? []).toString()
    expect(readShard(text, 100_000).map(({ query }) => query)).toEqual([0, 0, 0, 1, 1])
  })
})

describe('an unknown file', () => {
  it('is removed from among the open shards', async () => {
    const world = new World([responsesOf(FOLDER, 1, 2, 3)], SHARED)
    await world.open()
    await world.commitNext(0)
    await world.close()
    for (const name of ['7.part', '7.0.log', '0.0.log', 'x'])
      await world.store.writeWhole(`_state/open/${name}`, ['left'])
    await world.open()
    expect(await world.store.list('_state/open')).toEqual(['0.1.log'])
    await world.finish()
    await world.expectComplete()
  })

  it('is not left of a shard that was reopened between two row groups', async () => {
    // Rows of the first generation are in the file of those of the third.
    const world = new World([responsesOf(FOLDER, 1, 3, 3, 1, 1)], {
      rowGroupRows: 4,
      shardRows: 1000,
      owned: true,
    })
    await world.open()
    for (let page = 0; page < 4; page++) await world.commitNext(0)
    await world.close()
    await world.open()
    expect(await world.store.list('_state/open')).toEqual(['0.part'])
    await world.commitNext(0)
    await world.close()
    await world.expectComplete()
  })

  it('is moved out of the data set, and kept, when a shard is begun in its folder', async () => {
    const world = new World([responsesOf(FOLDER, 10, 20, 30)], SHARED)
    const orphans = ['part-00000.csv', 'part-00001.parquet', 'part-123456.csv.gz']
    const others = ['notes.txt', 'part-1.csv', '_part-00000.csv']
    for (const name of [...orphans, ...others]) await world.store.writeWhole(`${FOLDER}/${name}`, [name])
    await world.open()
    await world.finish()
    for (const name of orphans) {
      const kept = await world.store.read(`_state/orphans/${FOLDER}/${name}.orphan`)
      expect(Buffer.from(kept ?? []).toString()).toBe(name)
      expect(world.warnings.join()).toContain(`${FOLDER}/${name}`)
    }
    expect(await world.store.list(FOLDER)).toEqual([...others, 'part-00000.csv'].toSorted())
  })

  it('is never a shard in the journal', async () => {
    const world = new World([responsesOf(FOLDER, 50, 50, 50)], { ...SHARED, shardRows: 40 })
    await world.open()
    await world.commitNext(0)
    await world.close()
    await world.open()
    await world.finish()
    expect(world.warnings).toEqual([])
    await world.expectComplete()
  })

  it('is moved out as well when the shard of its folder is reopened', async () => {
    // The checkpoint was restored from a copy, made before the second shard was begun.
    const world = new World([responsesOf(FOLDER, 5, 5, 5, 5)], { ...SHARED, shardRows: 10 })
    await world.open()
    await world.commitNext(0)
    await world.close()
    const copy = new Map<string, Uint8Array>()
    for (const path of ['_state/checkpoint.jsonl', '_state/open/0.1.log'])
      copy.set(path, (await world.store.read(path)) ?? new Uint8Array())
    await world.open()
    await world.finish()
    expect(world.files().size).toBe(2)
    for (const [path, bytes] of copy) await world.store.writeWhole(path, [bytes])
    // Larger shards from now on: one has all the rows.
    world.options = SHARED
    await world.open()
    await world.finish()
    await world.expectComplete()
    expect([...world.files().keys()]).toEqual([`${FOLDER}/part-00000.csv`])
  })
})

it('keeps files that were moved before when more are moved', async () => {
  const { store } = temporaryStore()
  for (const text of ['first', 'second']) {
    await store.writeWhole(`${FOLDER}/part-00000.csv`, [text])
    const shards = shardSet(store, {})
    await shards.commit(commitOf(sliceOf(0, FOLDER, 5), { close: [FOLDER] }))
    await store.remove(`${FOLDER}/part-00000.csv`)
  }
  const kept: string[] = []
  for (const name of await store.list(`_state/orphans/${FOLDER}`)) {
    // Readers that list every folder select files by extension.
    expect(name).toMatch(/^part-00000\.csv(?:\.1)?\.orphan$/)
    kept.push(Buffer.from((await store.read(`_state/orphans/${FOLDER}/${name}`)) ?? []).toString())
  }
  expect(kept.toSorted()).toEqual(['first', 'second'])
})

it.skipIf(process.platform !== 'linux')(
  'closes its files, also when a shard could not be begun or sealed',
  async () => {
    const { store, root } = temporaryStore()
    for (const close of [[], [FOLDER]]) {
      const shards = shardSet(store, { record: () => Promise.reject(new Error('the disk is full')) })
      const commit = commitOf(sliceOf(0, FOLDER, 5), { close })
      await expect(shards.commit(commit)).rejects.toThrow('the disk is full')
      await shards.close()
    }
    expect(openFiles(root)).toEqual([])
  },
)

it('counts the shards that were begun, finished or not', async () => {
  const world = new World([responsesOf(FOLDER, 50, 50, 50)], SHARED)
  await world.open()
  for (let page = 0; page < 3; page++) await world.commitNext(0)
  await world.close()
  const state = await readCheckpoint(world.store)
  expect(state?.partsOf.get(FOLDER)).toBe(2)
  expect(state?.nextShard).toBe(2)
})

/** Paths under a folder that this process holds open. */
function openFiles(folder: string): string[] {
  const paths = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return paths.filter((path) => path.startsWith(folder))
}
