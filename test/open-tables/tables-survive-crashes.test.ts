import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { Crash, crashing } from '../load/shards-world.ts'
import { THOROUGH } from '../support/thorough.ts'
import { deltaFile, itemsOf, type Marks, type TableWorld, tableWorld, updateTo } from './world.ts'

const DAYS = ['2024-01-05', '2024-02-10', '2024-03-03']

type Shards = Awaited<ReturnType<TableWorld['manifest']>>['shards']

const WHOLE = { at: Number.POSITIVE_INFINITY, isMade: true }

type MarkedWorld = TableWorld & { marks: Marks }

/** Updates the tables of a world to these shards. */
async function update(
  world: MarkedWorld,
  shards: Shards,
  crash = WHOLE,
  beforeCommit: (path: string, chunks: readonly (string | Uint8Array)[]) => Promise<unknown> = async () => {},
) {
  const { data_set_id } = await world.manifest()
  const { load } = await world.pipeline()
  const owned = await storeAt(world.out).own(randomBytes(6).toString('hex'))
  const { wrap, used: changes } = crashing(crash.at, crash.isMade)
  const wrapped = wrap(owned)
  const store: OwnedStore = {
    ...wrapped,
    async create(path, chunks) {
      const all: (string | Uint8Array)[] = []
      for await (const chunk of chunks) all.push(chunk)
      if (path.endsWith('.json')) await beforeCommit(path, all)
      return wrapped.create(path, all)
    },
  }
  const settings = { ...load.tables, snapshots: 2, dataSetId: data_set_id }
  try {
    const sized = shards.map((shard) => ({ bytes: 1, ...shard }))
    return {
      states: await updateTo(store, settings, sized, undefined, undefined, world.marks),
      changes: changes(),
    }
  } catch (error) {
    if (!(error instanceof Crash)) throw error
    return { states: null, changes: changes() }
  } finally {
    await owned.release()
  }
}

it('a crash at any change leaves tables that the next command completes: nothing twice, nothing left', async () => {
  const { world, shards } = await untabled()
  const steps = [shards.slice(0, 1), shards.slice(0, 2), shards.slice(1, 3)]
  for (const [index, step] of steps.entries()) {
    const commits = index + 1
    const before = join(world.folder, 'before')
    await rm(before, { recursive: true, force: true })
    await cp(world.out, before, { recursive: true })
    const known = new Map(world.marks)
    const restore = async (): Promise<void> => {
      world.marks = new Map(known)
      await rm(world.out, { recursive: true })
      await cp(before, world.out, { recursive: true })
    }
    const { changes } = await update(world, step)
    const files = await filesOf(world)
    expect(changes).toBeGreaterThan(4)
    for (let at = 1; at <= changes; at += THOROUGH ? 1 : 5) {
      for (const isMade of [false, true]) {
        await restore()
        expect((await update(world, step, { at, isMade })).states).toBeNull()
        const { states } = await update(world, step)
        for (const state of states!) expect([...state.shards.keys()]).toEqual(step.map(({ path }) => path))
        const metadata = await world.metadata()
        // As many commits as without the crash.
        expect(metadata.snapshots.at(-1)!['sequence-number']).toBe(commits)
        expect(existsSync(join(world.out, deltaFile(commits)))).toBe(false)
        const hint = await readFile(join(world.out, '_iceberg/metadata/version-hint.text'), 'utf8')
        expect(hint).toBe(String(commits))
        // Metadata that has expired is gone, also if the crash came after the commit.
        const left = await filesOf(world)
        expect(left.filter(isVersion)).toEqual(files.filter(isVersion))
        expect(left.length).toBe(files.length)
      }
    }
    await restore()
    await update(world, step)
  }
})

const isVersion = (path: string): boolean => path.endsWith('.metadata.json')

/** A data set of three shards, without tables. */
async function untabled(): Promise<{ world: MarkedWorld; shards: Shards }> {
  const world = Object.assign(await tableWorld(itemsOf(...DAYS)), { marks: new Map() as Marks })
  await world.run()
  await rm(join(world.out, '_iceberg'), { recursive: true })
  await rm(join(world.out, '_delta_log'), { recursive: true })
  return { world, shards: (await world.manifest()).shards }
}

it.each(['iceberg', 'delta'] as const)(
  'a commit of another program between the last look at the %s table and ours is not overwritten',
  async (format) => {
    const { world, shards } = await untabled()
    world.load = { table_formats: [format] }
    await update(world, shards.slice(0, 1))
    let foreign = ''
    const work = update(world, shards, WHOLE, async (path) => {
      foreign = join(world.out, path)
      await writeFile(foreign, '{"format-version":2,"properties":{"spillway.data_set_id":"x"}}\n')
    })
    await expect(work).rejects.toMatchObject({
      kind: 'storage',
      what: expect.stringContaining('Another program'),
    })
    expect(await readFile(foreign, 'utf8')).toContain('"x"')
  },
)

it.each(['iceberg', 'delta'] as const)(
  'a commit that a former owner makes late to the %s table is taken into account: no shard twice, none of its alone',
  async (format) => {
    const { world, shards } = await untabled()
    world.load = { table_formats: [format] }
    let late = async (): Promise<void> => {}
    const former = update(world, shards.slice(0, 2), WHOLE, async (path, chunks) => {
      late = async () => {
        await mkdir(join(world.out, path, '..'), { recursive: true })
        await writeFile(join(world.out, path), Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))))
      }
      throw new Crash()
    })
    expect((await former).states).toBeNull()
    const { states } = await update(world, shards.slice(1), WHOLE, async () => {
      await late()
      late = async () => {}
    })
    expect([...states![0]!.shards.keys()]).toEqual(shards.slice(1).map(({ path }) => path))
    if (format === 'delta') {
      expect(existsSync(join(world.out, deltaFile(1)))).toBe(true)
      return
    }
    const metadata = await world.metadata()
    expect(metadata.snapshots.at(-1)!['sequence-number']).toBe(2)
    expect(metadata.snapshots.at(-1)!.summary).toMatchObject({
      'added-data-files': '1',
      'deleted-data-files': '1',
    })
  },
)

async function filesOf(world: TableWorld): Promise<readonly string[]> {
  return storeAt(world.out).list('_iceberg/metadata')
}
