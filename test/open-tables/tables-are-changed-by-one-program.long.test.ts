import { existsSync, writeFileSync } from 'node:fs'
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifyDataSet } from '../../src/index.ts'
import { refusal } from '../disk/errors.ts'
import { treeHashes } from '../fault/support.ts'
import { shardPaths } from '../support/read-shards.ts'
import { some } from '../support/thorough.ts'
import { CHANGES } from './cataloged.ts'
import { deltaFile, expectInLine, itemsOf, latestVersion, type TableWorld, tableWorld } from './world.ts'

const DAYS = ['2024-01-05', '2024-02-10', '2024-03-03']
const HINT = '_iceberg/metadata/version-hint.text'

/** Another program commits: properties of the table are copied, as every program does. */
async function foreignCommit(world: TableWorld): Promise<{ file: string; text: string }> {
  const version = await latestVersion(world.out)
  const text = JSON.stringify({ ...(await world.metadata()), 'last-updated-ms': Date.now() })
  return { file: join(world.out, `_iceberg/metadata/v${version + 1}.metadata.json`), text }
}

describe('what another program has made', () => {
  const theirs = [
    ['_iceberg/metadata/00000-aa.metadata.json', '{}'],
    ['_iceberg/metadata/v1.metadata.json', '{"format-version":2,"properties":{}}'],
    ['_iceberg/notes.txt', 'mine'],
    ['_delta_log/00000000000000000000.json', '{"commitInfo":{"engineInfo":"Other"}}\n'],
    ['_delta_log/_last_checkpoint', '{}'],
  ] as const
  it.each(some(theirs, 3))('stays untouched, and no request is sent: %s', async (path, text) => {
    const world = await tableWorld(itemsOf(...DAYS))
    await mkdir(join(world.out, path, '..'), { recursive: true })
    await writeFile(join(world.out, path), text)
    for (const fresh of [false, true]) {
      const error = await refusal(world.run({ fresh }))
      expect(error).toMatchObject({ kind: 'config', message: expect.stringContaining('Another program') })
    }
    expect(world.service.requested()).toEqual([])
    expect(await readFile(join(world.out, path), 'utf8')).toBe(text)
    const theirs = world.load
    world.load = {}
    expect(await world.run()).toMatchObject({ status: 'complete', error: null })
    world.load = theirs
    const before = await treeHashes(world.out)
    expect(await refusal(CHANGES.forget(world))).toMatchObject({ kind: 'config' })
    expect(await treeHashes(world.out)).toEqual(before)
    expect(await readFile(join(world.out, path), 'utf8')).toBe(text)
  })
})

describe('tables of another data set', () => {
  it.each(some(['_iceberg', '_delta_log'], 1))(
    'stay untouched, and no request is sent, whatever the command: %s',
    async (folder) => {
      const other = await tableWorld(itemsOf(...DAYS))
      await other.run()
      const world = await tableWorld(itemsOf(...DAYS), {})
      const put = () => cp(join(other.out, folder), join(world.out, folder), { recursive: true })
      const refuses = async (work: () => Promise<unknown>): Promise<void> => {
        const before = await treeHashes(join(world.out, folder))
        const sent = world.service.requested().length
        expect(await refusal(work())).toMatchObject({
          kind: 'config',
          message: expect.stringContaining('another data set'),
        })
        expect(world.service.requested()).toHaveLength(sent)
        expect(await treeHashes(join(world.out, folder))).toEqual(before)
      }
      await put()
      world.load = { table_formats: ['iceberg', 'delta'] }
      for (const fresh of [false, true]) await refuses(() => world.run({ fresh }))
      world.load = {}
      await world.run()
      const kept = await treeHashes(join(world.out, folder))
      await world.run({ fresh: true })
      expect(await treeHashes(join(world.out, folder))).toEqual(kept)
      world.load = { table_formats: ['iceberg', 'delta'] }
      for (const fresh of [false, true]) await refuses(() => world.run({ fresh }))
      for (const rebuild of [false, true]) await refuses(() => world.tables(rebuild))
      for (const change of [CHANGES.forget, CHANGES.prune, CHANGES.compact])
        await refuses(() => change(world))
    },
  )
})

it.each(some(['_delta_log/00000000000000000000.json', '_iceberg/metadata/v1.metadata.json'], 1))(
  'its own tables can be made anew without %s, and the log of Delta has a new id then',
  async (file) => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.run()
    await CHANGES.prune(world)
    const first = await deltaMetadata(world)
    await rm(join(world.out, file), { force: true })
    await rm(join(world.out, '_iceberg/metadata/v2.metadata.json'))
    await world.tables(true)
    await expectInLine(world)
    const anew = await deltaMetadata(world)
    expect(anew.id).not.toBe(first.id)
    expect(anew.configuration).toEqual({ 'spillway.data_set_id': (await world.manifest()).data_set_id })
    expect(await world.run()).toMatchObject({ error: null })
  },
)

async function deltaMetadata(world: TableWorld): Promise<{ id: string; configuration: object }> {
  const lines = (await world.deltaCommit(0)).split('\n')
  return JSON.parse(lines.find((line) => line.includes('"metaData"'))!).metaData
}

describe('a commit of another program', () => {
  it('is not overwritten; rows are exported, and the run fails', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.runUntil('2024-02-01')
    const { file, text: before } = await foreignCommit(world)
    writeFileSync(file, before)
    const summary = await world.runUntil('2024-04-01')
    expect(summary).toMatchObject({ rows: 2, status: 'failed', error: { kind: 'storage' } })
    expect(summary.manifest).not.toBeNull()
    expect((await world.manifest()).shards).toHaveLength(3)
    expect(await readFile(file, 'utf8')).toBe(before)
    const { problems } = await verifyDataSet(await world.pipeline())
    expect(problems).toContainEqual(expect.objectContaining({ cause: 'table' }))
    // Made anew, under a number that nobody has used.
    await world.tables(true)
    await expectInLine(world)
    expect(await latestVersion(world.out)).toBe(3)
  })

  it('whose version is the last that can be counted is refused, also where the table is made anew', async () => {
    const world = await tableWorld(itemsOf(...DAYS), { table_formats: ['iceberg'] })
    await world.run()
    const folder = join(world.out, '_iceberg/metadata')
    await cp(join(folder, 'v1.metadata.json'), join(folder, `v${2 ** 53}.metadata.json`))
    for (const rebuild of [false, true]) {
      expect(await refusal(world.tables(rebuild))).toMatchObject({
        kind: 'storage',
        message: expect.stringContaining('Undo that commit'),
      })
    }
  })

  it('in the log of Delta is found as well, and what a redo replaces stays until the table can follow', async () => {
    const world = await tableWorld(itemsOf(...DAYS), { table_formats: ['delta'] })
    await world.run()
    const before = await world.shards()
    await writeFile(join(world.out, deltaFile(1)), '{"commitInfo":{"engineInfo":"Other"}}\n')
    expect(await world.run({ redo: ['*/2024-01-01..2024-02-01'] })).toMatchObject({
      error: { kind: 'storage' },
    })
    for (const path of before) expect((await readFile(join(world.out, path))).byteLength).toBeGreaterThan(0)
    expect(await world.deltaCommit(1)).toContain('Other')
    await world.tables(true)
    await world.run()
    expect(await world.delta()).toEqual(await world.shards())
    expect(await shardPaths(world.out)).toHaveLength(3)
  })
})

describe('after a commit of another program', () => {
  it.each([
    ['forget', CHANGES.forget],
    ['prune', CHANGES.prune],
    ['compact', CHANGES.compact],
  ])('%s changes nothing until the table can follow, and its dry run says so', async (_, work) => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.run()
    const commit = await foreignCommit(world)
    const before = await treeHashes(world.out)
    writeFileSync(commit.file, commit.text)
    for (const dryRun of [true, false]) {
      expect(await refusal(work(world, { dryRun }))).toMatchObject({
        kind: 'storage',
        message: expect.stringContaining('--rebuild'),
      })
    }
    await rm(commit.file)
    expect(await treeHashes(world.out)).toEqual(before)
    await work(world)
    expect(await world.iceberg()).toEqual(await world.shards())
  })

  it('that comes during a forget, the message lists the files that stay, and the way out removes them', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.run()
    const [first] = await world.shards()
    const commit = await foreignCommit(world)
    const error = await refusal(
      CHANGES.forget(world, { onShard: () => writeFileSync(commit.file, commit.text) }),
    )
    expect(error.kind).toBe('storage')
    expect(error.message).toContain(
      `these files stay, although the data set no longer has their rows: ${first} (`,
    )
    expect(error.message).toContain('--rebuild`; then repeat the command')
    expect(existsSync(join(world.out, first!))).toBe(true)
    await world.tables(true)
    await CHANGES.forget(world)
    expect(existsSync(join(world.out, first!))).toBe(false)
    await expectInLine(world)
  })
})

it('a data set that was moved is refused until its Iceberg table is made anew; Delta needs nothing', async () => {
  const world = await tableWorld(itemsOf(...DAYS))
  await world.run()
  const uuid = (await world.metadata())['table-uuid']
  await rename(world.out, join(world.folder, 'elsewhere'))
  world.load = { path: 'elsewhere', table_formats: ['iceberg', 'delta'] }
  for (const work of [() => world.run(), () => world.tables()]) {
    expect(await refusal(work())).toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/--rebuild. names the shards there, in one snapshot/),
    })
  }
  const [iceberg] = await world.tables(true)
  expect(iceberg).toMatchObject({ location: `file://${world.folder}/elsewhere/_iceberg`, rows: 3 })
  const text = await readFile(join(world.folder, 'elsewhere', '_iceberg/metadata/v2.metadata.json'), 'utf8')
  expect(JSON.parse(text)).toMatchObject({ 'table-uuid': uuid, snapshots: [{ 'sequence-number': 1 }] })
  expect(await world.run()).toMatchObject({ status: 'complete', error: null })
})

it('the highest version counts, whatever the hint says', async () => {
  const world = await tableWorld(itemsOf(...DAYS))
  await world.runUntil('2024-02-01')
  await world.runUntil('2024-03-01')
  await writeFile(join(world.out, HINT), '1')
  await world.run()
  expect(await readFile(join(world.out, HINT), 'utf8')).toBe('2')
  expect((await world.metadata()).snapshots).toHaveLength(2)
})

it('a damaged shard is named', async () => {
  const world = await tableWorld(itemsOf(...DAYS), {})
  await world.run()
  const [path] = await world.shards()
  await writeFile(join(world.out, path!), 'torn')
  world.load = { table_formats: ['iceberg'] }
  await expect(world.tables()).rejects.toMatchObject({
    kind: 'damaged',
    where: expect.stringContaining(path!),
  })
})
