import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/index.ts'
import { type ShardLine, ShardSet, type ShardSetOptions } from '../../src/load/index.ts'
import { readCheckpoint } from '../../src/state/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { type ChainPages, framesOf, type Page, pageOf, textCoder, World } from './shards-world.ts'

const FOLDER = 'credentials/import_window=2024-01-01'

function shardSet(store: Store, over: Partial<ShardSetOptions<Page>>): ShardSet<Page> {
  return new ShardSet<Page>({
    store,
    coder: textCoder,
    extension: '.csv',
    chunkRows: 100_000,
    shardRows: 1_000_000,
    record: async () => {},
    nextShard: 0,
    partsOf: () => 0,
    warn: () => {},
    ...over,
  })
}

function oneChain(...rows: number[]): ChainPages[] {
  return [{ folder: FOLDER, rows }]
}

function rowsOf(world: World): Record<string, number[]> {
  return Object.fromEntries(
    [...world.files()].map(([path, text]) => [
      path.slice(FOLDER.length + 1),
      framesOf(text).map(({ rows }) => rows),
    ]),
  )
}

describe('a shard', () => {
  it('is closed with the page that brings it to shard_rows, never within a page', async () => {
    const world = new World(oneChain(40, 50, 10, 99, 1, 250, 3), { shardRows: 100, owned: false })
    await world.open()
    await world.finish()
    expect(rowsOf(world)).toEqual({
      'part-00000.csv': [40, 50, 10],
      'part-00001.csv': [99, 1],
      'part-00002.csv': [250],
      'part-00003.csv': [3],
    })
    await world.expectComplete()
  })

  it('is closed with the last page of the only chain of its folder', async () => {
    const world = new World(oneChain(40, 50, 0), { shardRows: 1000, owned: true })
    await world.open()
    await world.commitNext(0)
    await world.commitNext(0)
    expect(world.files().size).toBe(0)
    await world.commitNext(0)
    expect(rowsOf(world)).toEqual({ 'part-00000.csv': [40, 50] })
    await world.close()
    await world.expectComplete()
  })

  it('is none where a chain has no rows', async () => {
    for (const owned of [true, false]) {
      const world = new World(oneChain(0, 0), { shardRows: 1000, owned })
      await world.open()
      await world.finish()
      await world.expectComplete()
      expect(world.files().size).toBe(0)
    }
  })

  it('gets a chunk for a hundred thousand rows, and the rest as the last one', async () => {
    const world = new World(oneChain(60_000, 50_000, 99_999, 1, 5), { shardRows: 1_000_000, owned: false })
    await world.open()
    await world.finish()
    const [text = ''] = world.files().values()
    const chunks = JSON.parse(text.split('\n').at(-2)?.slice(1) ?? '') as { rows: number }[]
    expect(chunks.map(({ rows }) => rows)).toEqual([110_000, 100_000, 5])
    await world.expectComplete()
  })

  it('takes the pages of many chains that commit at once, each once and each in its own order', async () => {
    const chains = Array.from(
      { length: 12 },
      (_, chain): ChainPages => ({ folder: FOLDER, rows: [chain, 7, 30, 2] }),
    )
    const world = new World(chains, { shardRows: 100, owned: false })
    await world.open()
    await Promise.all(
      chains.map(async (_, chain) => {
        while (await world.commitNext(chain));
      }),
    )
    await world.finish()
    await world.expectComplete()
    expect(world.files().size).toBeGreaterThan(3)
  })

  it('stands open beside those of other folders', async () => {
    const chains = ['a', 'b', 'c'].map(
      (name): ChainPages => ({ folder: `credentials/query=${name}`, rows: [1, 2, 3] }),
    )
    const world = new World(chains, { shardRows: 1000, owned: true })
    await world.open()
    for (const chain of [0, 1, 2, 0, 1, 2]) await world.commitNext(chain)
    expect(world.shards?.openFolders).toEqual(chains.map(({ folder }) => folder))
    await world.finish()
    await world.expectComplete()
    expect([...world.files().keys()]).toEqual(chains.map(({ folder }) => `${folder}/part-00000.csv`))
  })
})

describe('what goes on record', () => {
  it('is on the disk before: rows of a page, bytes of a chunk, the whole of a shard', async () => {
    const { store, root } = temporaryStore()
    const lines: ShardLine<Page>[] = []
    const shards = shardSet(store, {
      shardRows: 300_000,
      record: async (more) => {
        for (const line of more) {
          lines.push(line)
          if (line.kind === 'page' && line.log !== undefined) {
            expect(statSync(join(root, `_state/open/${line.shard}.log`)).size).toBe(line.log.end)
          } else if (line.kind === 'chunk') {
            expect(statSync(join(root, '_state/open/0.part')).size).toBe(line.offset + line.bytes)
          } else if (line.kind === 'seal') {
            // The final name comes after the record: until then a crash leaves no shard that nobody knows.
            expect(existsSync(join(root, line.path))).toBe(false)
            const bytes = readFileSync(join(root, '_state/open/0.part'))
            expect(bytes.length).toBe(line.bytes)
            expect(createHash('sha256').update(bytes).digest('hex')).toBe(line.sha256)
          }
        }
      },
    })
    const [chain] = oneChain(60_000, 70_000, 0, 80_000, 100_000)
    for (let number = 0; number < 5; number++) {
      const { rows, page } = pageOf(0, number, chain!)
      await shards.commit(FOLDER, rows, page, false)
    }
    await shards.close()
    expect(lines.map(({ kind }) => kind)).toEqual(['open', 'page', 'page', 'chunk', 'page', 'page', 'seal'])
    expect(lines.at(-1)).toMatchObject({ kind: 'seal', rows: 310_000, page: { rows: 100_000, next: null } })
    expect(existsSync(join(root, FOLDER, 'part-00000.csv'))).toBe(true)
    expect(await store.list('_state/open')).toEqual([])
  })

  it('shares its flushes: pages of one folder that wait for another go together', async () => {
    const { store } = temporaryStore()
    let flushes = 0
    const records: number[] = []
    const counting: Store = {
      ...store,
      async openLog(path, size) {
        const log = await store.openLog(path, size)
        const flush = (): Promise<void> => {
          flushes++
          return log.flush()
        }
        return Object.assign(Object.create(log), { flush })
      },
    }
    const record = async (lines: readonly ShardLine<Page>[]): Promise<void> => {
      records.push(lines.filter(({ kind }) => kind === 'page').length)
    }
    const shards = shardSet(counting, { record })
    const commits = Array.from({ length: 5 }, (_, chain) => {
      const { rows, page } = pageOf(chain, 0, { folder: FOLDER, rows: [3, 3] })
      return shards.commit(FOLDER, rows, page, false)
    })
    await Promise.all(commits)
    await shards.close()
    expect(records.reduce((sum, pages) => sum + pages)).toBe(5)
    expect(records.length).toBeLessThanOrEqual(2)
    expect(flushes).toBe(records.length)
  })

  it('that fails stops the folder, and a later run goes on from what is on record', async () => {
    for (let failing = 1; failing <= 8; failing++) {
      const world = new World(oneChain(60_000, 70_000, 10, 80_000, 100_000), {
        shardRows: 300_000,
        owned: false,
      })
      await world.open()
      const { checkpoint } = world
      if (checkpoint === null) throw new Error('not open')
      const append = checkpoint.append.bind(checkpoint)
      let records = 0
      Object.assign(checkpoint, {
        append: (lines: Parameters<typeof append>[0]) =>
          ++records >= failing ? Promise.reject(new Error('the disk is full')) : append(lines),
      })
      const outcome = await world.finish().then(
        () => 'done',
        (error: Error) => error.message,
      )
      if (outcome === 'the disk is full') {
        const { rows, page } = pageOf(0, world.pagesOf(0), world.chains[0]!)
        await expect(world.shards?.commit(FOLDER, rows, page, false)).rejects.toThrow('the disk is full')
      }
      await world.close()
      await world.open()
      expect(world.givenUp).toBe(0)
      await world.finish()
      await world.expectComplete()
    }
  })

  it('in one folder does not stop another when it fails', async () => {
    const { store } = temporaryStore()
    const shards = shardSet(store, {
      record: async (lines) => {
        if (lines.some((line) => line.kind === 'open' && line.folder.endsWith('b')))
          throw new Error('refused')
      },
    })
    const commit = (name: string) => {
      const { rows, page } = pageOf(0, 0, oneChain(5, 5)[0]!)
      return shards.commit(`credentials/query=${name}`, rows, page, false)
    }
    await expect(commit('b')).rejects.toThrow('refused')
    await commit('a')
    await expect(commit('b')).rejects.toThrow('refused')
    await commit('a')
    await shards.close()
  })
})

describe('what nobody knows of', () => {
  it('is removed from among the open shards', async () => {
    const world = new World(oneChain(10, 20, 30), { shardRows: 1000, owned: false })
    await world.open()
    await world.commitNext(0)
    await world.close()
    for (const name of ['7.part', '7.log', 'x']) await world.store.writeWhole(`_state/open/${name}`, ['left'])
    await world.open()
    expect(await world.store.list('_state/open')).toEqual(['0.log'])
    await world.finish()
    await world.expectComplete()
  })

  it('is moved out of the data set, and kept, where a shard is begun in its folder', async () => {
    const world = new World(oneChain(10, 20, 30), { shardRows: 40, owned: false })
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

  it('leaves shards alone that are on record', async () => {
    const world = new World(oneChain(50, 50, 50), { shardRows: 40, owned: false })
    await world.open()
    await world.commitNext(0)
    await world.close()
    await world.open()
    await world.finish()
    expect(world.warnings).toEqual([])
    await world.expectComplete()
  })

  it('is moved out as well where the shard of its folder is taken up again', async () => {
    // The checkpoint was put back from a copy, made before the second shard was begun.
    const world = new World(oneChain(50, 50, 50, 50), { shardRows: 100, owned: false })
    await world.open()
    await world.commitNext(0)
    await world.close()
    const copy = new Map<string, Uint8Array>()
    for (const path of ['_state/checkpoint.jsonl', '_state/open/0.log'])
      copy.set(path, (await world.store.read(path)) ?? new Uint8Array())
    await world.open()
    await world.finish()
    expect(world.files().size).toBe(2)
    for (const [path, bytes] of copy) await world.store.writeWhole(path, [bytes])
    // Larger shards from now on: one takes all the rows.
    world.options = { shardRows: 1000, owned: false }
    await world.open()
    await world.finish()
    await world.expectComplete()
    expect(rowsOf(world)).toEqual({ 'part-00000.csv': [50, 50, 50, 50] })
  })
})

it('keeps what was moved aside before when more is moved aside', async () => {
  const { store } = temporaryStore()
  for (const text of ['first', 'second']) {
    await store.writeWhole(`${FOLDER}/part-00000.csv`, [text])
    const shards = shardSet(store, {})
    const { rows, page } = pageOf(0, 0, oneChain(5)[0]!)
    await shards.commit(FOLDER, rows, page, true)
    await store.remove(`${FOLDER}/part-00000.csv`)
  }
  const kept: string[] = []
  for (const name of await store.list(`_state/orphans/${FOLDER}`)) {
    // Readers that look into every folder go by how names end.
    expect(name).toMatch(/^part-00000\.csv(?:\.1)?\.orphan$/)
    kept.push(Buffer.from((await store.read(`_state/orphans/${FOLDER}/${name}`)) ?? []).toString())
  }
  expect(kept.toSorted()).toEqual(['first', 'second'])
})

it.skipIf(process.platform !== 'linux')(
  'gives its files back, also when a shard could not be begun',
  async () => {
    const { store, root } = temporaryStore()
    for (const close of [false, true]) {
      const shards = shardSet(store, { record: () => Promise.reject(new Error('the disk is full')) })
      const { rows, page } = pageOf(0, 0, oneChain(5, 5)[0]!)
      await expect(shards.commit(FOLDER, rows, page, close)).rejects.toThrow('the disk is full')
      await shards.close()
    }
    const open = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    expect(open.filter((path) => path.startsWith(root))).toEqual([])
  },
)

it('counts the shards that were begun, finished or not', async () => {
  const world = new World(oneChain(50, 50, 50), { shardRows: 100, owned: false })
  await world.open()
  for (let page = 0; page < 3; page++) await world.commitNext(0)
  await world.close()
  const state = await readCheckpoint(world.store)
  expect(state?.partsOf.get(FOLDER)).toBe(2)
  expect(state?.nextShard).toBe(2)
})
