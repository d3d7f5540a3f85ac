import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { icebergRead } from 'icebird'
import { describe, expect, it } from 'vitest'
import { openChecked } from '../../src/data-set/open/open-checked.ts'
import { verifyDataSet } from '../../src/index.ts'
import { asOwner, storeAt } from '../disk/temporary-store.ts'
import { forgetPeople, pruneDataSet } from '../support/rooms.ts'
import { THOROUGH } from '../support/thorough.ts'
import {
  deltaFile,
  type EntryRow,
  expectInLine,
  expectNoMetadataLeft,
  itemsOf,
  latestVersion,
  readAvro,
  servedOver,
  type TableWorld,
  tableWorld,
} from './world.ts'

const DAYS = ['2024-01-05', '2024-01-20', '2024-02-10', '2024-03-03', '2024-03-31']

/** One shard of those before is replaced, and the snapshots that name it have ended. @returns its path */
async function expectReplaced(
  world: TableWorld,
  before: readonly string[],
  { rows, version }: { rows: string; version: string },
): Promise<string> {
  await expectInLine(world)
  const gone = before.filter((path) => !existsSync(join(world.out, path)))
  expect(gone).toHaveLength(1)
  const counts = { 'deleted-data-files': '1', 'added-data-files': '1', 'total-records': rows }
  const { snapshots } = await world.metadata()
  expect(snapshots).toMatchObject([{ summary: { operation: 'overwrite', ...counts } }])
  expect(await world.versions()).toEqual([`${version}.metadata.json`])
  return gone[0]!
}

describe('both tables', () => {
  it('get one snapshot for each run that added shards, and none otherwise', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.runUntil('2024-02-01')
    await expectInLine(world)
    const [first] = (await world.metadata()).snapshots
    expect(first!.summary).toMatchObject({ operation: 'append', 'added-records': '2', 'total-records': '2' })
    await world.runUntil('2024-04-01')
    await world.run()
    expect(await world.tables()).toMatchObject([
      { format: 'iceberg', rows: 5, files: 3 },
      { format: 'delta', rows: 5, files: 3, snapshot: 1 },
    ])
    await expectInLine(world)
    const metadata = await world.metadata()
    const { data_set_id } = await world.manifest()
    expect(metadata['table-uuid']).toBe(data_set_id)
    expect(metadata.snapshots).toHaveLength(2)
    expect(await readFile(join(world.out, '_iceberg/metadata/version-hint.text'), 'utf8')).toBe('2')
    expect(metadata.snapshots[1]!.summary).toMatchObject({
      operation: 'append',
      'added-data-files': '2',
      'total-records': '5',
      'spillway.data_set_id': data_set_id,
      'spillway.manifest_sha256': expect.stringMatching(/^[0-9a-f]{64}$/),
      'spillway.run_id': expect.any(String),
    })
  })

  it('say that a snapshot only deletes', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.run()
    const days = Math.floor((Date.now() - Date.parse('2024-03-01')) / 86_400_000)
    await pruneDataSet(await world.pipeline(), { olderThan: `${days}d`, env: {} })
    await expectInLine(world)
    expect((await world.metadata()).snapshots.at(-1)!.summary).toMatchObject({
      operation: 'delete',
      'deleted-data-files': '2',
    })
    const [commit] = (await world.deltaCommit(1)).split('\n')
    expect(JSON.parse(commit!).commitInfo).toMatchObject({ operation: 'DELETE' })
  })

  it('leave out bounds that readers would not know as a time', async () => {
    const [first, ...others] = itemsOf(...DAYS)
    const source = { ...(first!.source as object), leaked_at: '9999-12-31T23:59:59.999999+00:00' }
    const world = await tableWorld([{ ...first, source }, ...others])
    await world.run()
    const commit = await world.deltaCommit(0)
    expect(commit).toContain('"source_leaked_at')
    expect(commit).not.toContain('+010000')
    await expectInLine(world)
  })

  it('lose the shards of people who are forgotten, and end the snapshots that name them', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    for (const until of ['2024-02-01', '2024-04-01']) await world.runUntil(until)
    const before = await world.shards()
    expect((await world.metadata()).snapshots).toHaveLength(2)
    const people = ['person-1@scatterholt.com']
    const forgotten = await forgetPeople(await world.pipeline(), people, { env: {} })
    expect(forgotten).toMatchObject({ rows: 1, shards: 1 })
    // Both former snapshots named the file.
    const gone = await expectReplaced(world, before, { rows: '4', version: 'v3' })
    // Commits keep bounds as long as the log: of a shard of one row these are values of a person.
    expect(await readdir(join(world.out, '_delta_log'))).toEqual(['00000000000000000000.json'])
    expect(await world.deltaCommit(0)).not.toContain(gone)
    // Later changes are commits of it.
    await world.run({ redo: ['*/2024-01-01..2024-02-01'] })
    expect(await readdir(join(world.out, '_delta_log'))).toContain('00000000000000000001.json')
    await expectInLine(world)
  })

  it('are made for a data set that is there', async () => {
    const world = await tableWorld(itemsOf(...DAYS), {})
    await world.run()
    expect(existsSync(join(world.out, '_iceberg'))).toBe(false)
    world.load = { table_formats: ['iceberg', 'delta'] }
    const { problems } = await verifyDataSet(await world.pipeline())
    expect(problems.map(({ cause }) => cause)).toEqual(['table', 'table'])
    await world.tables()
    await expectInLine(world)
  })

  it('begin again with a data set that starts over', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    await world.run()
    await world.run({ fresh: true })
    await expectInLine(world)
    expect(await latestVersion(world.out)).toBe(1)
  })

  it('show a data set without a row as a table without a row', async () => {
    const world = await tableWorld([])
    await world.run()
    await expectInLine(world)
    expect(await world.tables()).toMatchObject([
      { rows: 0, files: 1 },
      { rows: 0, files: 1 },
    ])
  })

  it('repeat no identity and no secret', async () => {
    const world = await tableWorld(itemsOf(...DAYS))
    world.transform = { secret: 'partial' }
    await world.run()
    let text = ''
    for (const name of await readdir(join(world.out, '_iceberg/metadata'))) {
      const file = join(world.out, '_iceberg/metadata', name)
      if (!name.endsWith('.avro')) text += await readFile(file, 'latin1')
      else
        for (const row of await readAvro<Partial<EntryRow>>(file))
          text += JSON.stringify(row) + boundsText(row)
    }
    for (const name of await readdir(join(world.out, '_delta_log')))
      text += await readFile(join(world.out, '_delta_log', name), 'utf8')
    expect(text).toContain('leak_1')
    expect(text).not.toMatch(/person-|secret of|\*\*\*\*/)
  })
})

/** Bounds are bytes, which JSON shows as numbers. */
function boundsText({ data_file }: Partial<EntryRow>): string {
  const bounds = [...(data_file?.lower_bounds ?? []), ...(data_file?.upper_bounds ?? [])]
  return bounds.map(({ value }) => value.toString('latin1')).join('\n')
}

it.runIf(THOROUGH)('a log of 1,000 Delta commits is warned of, and made anew it has one', async () => {
  const world = await tableWorld(itemsOf(...DAYS), { table_formats: ['delta'] })
  await world.run()
  const { data_set_id } = await world.manifest()
  const operationParameters = { data_set_id }
  const commit = async (version: number): Promise<void> => {
    const commitInfo = { engineInfo: 'Spillway', operationParameters }
    await writeFile(join(world.out, deltaFile(version)), `${JSON.stringify({ commitInfo })}\n`)
  }
  /** As if the data set had made these commits. */
  const keepMark = (version: number): Promise<void> =>
    asOwner(storeAt(world.out), async (own) => {
      const paths = (await own.list('_delta_log')).map((name) => `_delta_log/${name}`)
      const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')
      const lines = paths.map((path) => `${path} ${sha256(readFileSync(join(world.out, path)))}\n`)
      const journal = await openChecked(own, null)
      await journal!.append([
        { kind: 'table', format: 'delta', marks: [{ version, sha256: sha256(lines.join('')) }] },
      ])
      await journal!.close()
    })
  for (let version = 1; version < 999; version++) await commit(version)
  await keepMark(998)
  expect(await world.tables()).toMatchObject([{ snapshot: 998, rows: 5 }])
  expect(world.warnings).toEqual([])
  await commit(999)
  await keepMark(999)
  expect(await world.tables()).toMatchObject([{ snapshot: 999, rows: 5 }])
  expect(world.warnings).toEqual([expect.stringMatching(/has 1000 commits.*--rebuild/)])
  expect(await world.tables(true)).toMatchObject([{ snapshot: 0, rows: 5 }])
  expect(world.warnings).toHaveLength(1)
  expect(await world.delta()).toEqual(await world.shards())
})

describe('the Iceberg table', () => {
  it('is read over HTTP, also as of an older snapshot', async () => {
    const root = await servedOver(() => world.out)
    const load = { table_formats: ['iceberg' as const], table_location: `${root}/` }
    const world = await tableWorld(itemsOf(...DAYS), load)
    await world.runUntil('2024-02-01')
    await world.runUntil('2024-04-01')
    const tableUrl = `${root}/_iceberg`
    expect(await icebergRead({ tableUrl })).toHaveLength(5)
    const metadata = await world.metadata()
    const older = { ...metadata, 'current-snapshot-id': metadata.snapshots[0]!['snapshot-id'] }
    expect(await icebergRead({ tableUrl, metadata: older as never })).toHaveLength(2)
  })

  it('keeps as many snapshots as are asked for, and their metadata alone', async () => {
    const world = await tableWorld(itemsOf(...DAYS), { table_formats: ['iceberg'], table_snapshots: 2 })
    for (const until of ['2024-02-01', '2024-03-01', '2024-04-01', '2024-05-01']) {
      world.service.items = itemsOf(...DAYS, '2024-04-02')
      await world.runUntil(until)
    }
    const { snapshots } = await world.metadata()
    expect(snapshots.map((each) => each['sequence-number'])).toEqual([3, 4])
    expect(await world.versions()).toEqual(['v3.metadata.json', 'v4.metadata.json'])
    await expectNoMetadataLeft(world.out)
  })
})
