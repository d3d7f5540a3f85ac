import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import avro from 'avsc'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { expect } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { bringTables, type TableSummary, WritableDataSet } from '../../src/data-set/index.ts'
import { type PipelineSettings, pipelineFrom, runPipeline, verifyDataSet } from '../../src/index.ts'
import { type TableMarks, updateTables } from '../../src/open-tables/index.ts'
import { encoderBuild } from '../../src/package/index.ts'
import type { ColumnStatistics } from '../../src/rows/index.ts'
import type { RunSettings } from '../../src/run-options.ts'
import { type Fields, itemAt, serviceOf } from '../run/world.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { portOf } from '../support/listening.ts'

const NEVER = new AbortController().signal
export const NOW = Date.parse('2025-03-10T12:00:00Z')
const CLOCK = {
  now: () => NOW,
  monotonicMs: () => performance.now(),
  sleep: async (_ms: number, signal: AbortSignal) => signal.throwIfAborted(),
}

/** Credentials of the days given, with ids from 1 and values that no other credential has. */
export function itemsOf(...days: readonly string[]): Fields[] {
  return days.map((day, i) => ({
    ...itemAt(i + 1, `${day}T08:00:00.123456+00:00`),
    identity_name: `person-${i + 1}@scatterholt.com`,
    hash: `secret of ${i + 1}`,
  }))
}

export type TableWorld = Awaited<ReturnType<typeof tableWorld>>

/** A data set with tables over it, exported from a service with these items, in this process. */
export async function tableWorld(
  items: readonly Fields[],
  load: PipelineSettings['load'] = { table_formats: ['iceberg', 'delta'] },
) {
  const folder = scratchFolder()
  const service = await serviceOf(items, 100)
  const out = join(folder, 'out')
  const world = {
    folder,
    out,
    service,
    load,
    until: '2024-04-01',
    /** Of `tables`. */
    warnings: [] as string[],
    transform: {} as PipelineSettings['transform'],
    env: { SPILLWAY_TOKEN: 'token' } as Record<string, string>,
    queries: undefined as PipelineSettings['extract']['queries'],
    settings: (): PipelineSettings => ({
      name: 'acme',
      service: { base_url: service.url, requests_per_second: 10_000, retries: 0 },
      extract: {
        ...(world.queries === undefined ? { domains: ['scatterholt.com'] } : { queries: world.queries }),
        windows: { from: '2024-01-01', until: world.until, every: 'month' },
      },
      transform: world.transform,
      load: { path: 'out', ...world.load },
    }),
    pipeline: () => pipelineFrom(world.settings(), { env: world.env, cwd: folder }),
    async run(settings: RunSettings = {}) {
      return runPipeline(await world.pipeline(), { env: world.env, clock: CLOCK, ...settings })
    },
    runUntil(until: string) {
      world.until = until
      return world.run()
    },
    /** What a change without a run needs. */
    changing: () => ({
      clock: CLOCK,
      stop: NEVER,
      readSecret: async (name: string) => world.env[name] ?? null,
      onLog: (_: unknown, message: string) => void world.warnings.push(message),
      version: '1.0.0',
      build: encoderBuild(),
      maskKey: null,
    }),
    opened: async () => WritableDataSet.of(await world.pipeline()),
    bring: async (rebuild = false) => bringTables(await world.opened(), rebuild, world.changing()),
    tables: async (rebuild = false): Promise<readonly TableSummary[]> => (await world.bring(rebuild)).tables,
    manifest: async () =>
      JSON.parse(await readFile(join(out, '_manifest.json'), 'utf8')) as {
        data_set_id: string
        shards: { path: string; rows: number; sha256: string }[]
      },
    shards: async () => (await world.manifest()).shards.map(({ path }) => path).sort(),
    metadata: () => metadataOf(out),
    versions: async () =>
      (await readdir(join(out, '_iceberg/metadata'))).filter((name) => name.endsWith('.json')).sort(),
    iceberg: async () => icebergShards(out, await world.metadata()),
    delta: () => deltaShards(out),
    deltaCommit: (version: number) => readFile(join(out, deltaFile(version)), 'utf8'),
  }
  return world
}

type IcebergMetadata = {
  location: string
  'table-uuid': string
  'current-snapshot-id': number
  'current-schema-id': number
  schemas: { 'schema-id': number; fields: { id: number; name: string; type: unknown }[] }[]
  snapshots: {
    'snapshot-id': number
    'sequence-number': number
    'manifest-list': string
    summary: Record<string, string>
  }[]
  'metadata-log': { 'metadata-file': string }[]
}

export async function latestVersion(out: string): Promise<number> {
  const names = await readdir(join(out, '_iceberg/metadata')).catch(() => [])
  return Math.max(0, ...names.map((name) => Number(/^v(\d+)\.metadata\.json$/.exec(name)?.[1] ?? 0)))
}

export async function metadataOf(out: string): Promise<IcebergMetadata> {
  const file = join(out, `_iceberg/metadata/v${await latestVersion(out)}.metadata.json`)
  return JSON.parse(await readFile(file, 'utf8'))
}

/** Serves the files below a folder, also in part, at their paths as they are. @returns its address */
export async function servedOver(folder: () => string): Promise<string> {
  const server = createServer(async (request, response) => {
    const bytes = await readFile(join(folder(), request.url!)).catch(() => null)
    if (bytes === null) return void response.writeHead(404).end()
    const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    if (start === undefined) return void response.end(bytes)
    const part = bytes.subarray(Number(start), end === '' ? undefined : Number(end) + 1)
    response.writeHead(206, { 'content-length': part.byteLength }).end(part)
  })
  return `http://127.0.0.1:${await portOf(server)}`
}

/** Updates tables to these shards, of which no more is known. */
export async function updateTo(
  store: OwnedStore,
  settings: TableSettings,
  shards: Content['shards'],
  columns: Content['columns'] = [{ name: 'id', type: 'int64', nullable: false, meaning: 'an id' }],
  statistics: readonly ColumnStatistics[] = [],
  /** As the state of the data set keeps them. */
  marks: Marks = new Map(),
) {
  const content = { columns, shards, manifestSha256: '0'.repeat(64), forgottenMs: null, runId: null }
  const options = { nowMs: Date.now(), rebuild: false, warn: () => {} }
  const { states, removeExpired } = await updateTables(store, settings, content, {
    ...options,
    statisticsOf: async () => statistics,
    marks: () => marks,
    keepMarks: async (format, kept) => void marks.set(format, kept),
  })
  await removeExpired()
  return states
}
type TableSettings = Parameters<typeof updateTables>[1]
export type Marks = TableMarks extends ReadonlyMap<infer Key, infer Value> ? Map<Key, Value> : never
type Content = Parameters<typeof updateTables>[2]

export type ManifestRow = {
  readonly manifest_path: string
  readonly manifest_length: number
  readonly min_sequence_number: number
}
export type EntryRow = {
  readonly status: number
  readonly sequence_number: number | null
  readonly data_file: {
    readonly file_path: string
    readonly file_size_in_bytes: number
    readonly record_count: number
    readonly lower_bounds: readonly { readonly key: number; readonly value: Buffer }[]
    readonly upper_bounds: readonly { readonly key: number; readonly value: Buffer }[]
  }
}

/** Every line of an Avro file, by a reader that is not ours. */
export async function readAvro<Row>(file: string): Promise<Row[]> {
  const rows: Row[] = []
  const decoder = avro.createFileDecoder(file)
  await new Promise<void>((done, fail) => {
    decoder.on('data', (row: Row) => rows.push(row))
    decoder.on('end', done)
    decoder.on('error', fail)
  })
  return rows
}

/** What the current snapshot names, by avsc: its files, with their paths in the data set. */
export async function icebergFiles(out: string, metadata: IcebergMetadata) {
  const root = metadata.location.replace(/_iceberg$/, '')
  const local = (address: string): string => join(out, address.slice(root.length))
  const current = metadata['current-snapshot-id']
  const snapshot = metadata.snapshots.find((each) => each['snapshot-id'] === current)!
  const files: (EntryRow['data_file'] & { path: string })[] = []
  for (const { manifest_path, manifest_length } of await readAvro<ManifestRow>(
    local(snapshot['manifest-list']),
  )) {
    const file = local(manifest_path)
    expect((await readFile(file)).byteLength).toBe(manifest_length)
    for (const { status, data_file } of await readAvro<EntryRow>(file))
      if (status !== 2) files.push({ ...data_file, path: data_file.file_path.slice(root.length) })
  }
  return files
}

/** Paths of the shards in the current snapshot; every file has to be there. */
export async function icebergShards(out: string, metadata: IcebergMetadata): Promise<string[]> {
  const files = await icebergFiles(out, metadata)
  for (const { path, file_size_in_bytes, record_count } of files) {
    const shard = await asyncBufferFromFile(join(out, path))
    expect(shard.byteLength).toBe(file_size_in_bytes)
    expect(await parquetReadObjects({ file: shard })).toHaveLength(record_count)
  }
  return files.map(({ path }) => path).sort()
}

/** Whether the folder holds what the current metadata of the Iceberg table names, and nothing else. */
export async function expectNoMetadataLeft(out: string): Promise<void> {
  const { snapshots, ...metadata } = await metadataOf(out)
  const nameOf = (address: string): string => address.split('/').at(-1)!
  const named = new Set([`v${await latestVersion(out)}.metadata.json`, 'version-hint.text'])
  for (const each of metadata['metadata-log']) named.add(nameOf(each['metadata-file']))
  for (const snapshot of snapshots) {
    const list = nameOf(snapshot['manifest-list'])
    named.add(list)
    for (const { manifest_path } of await readAvro<ManifestRow>(join(out, '_iceberg/metadata', list)))
      named.add(nameOf(manifest_path))
  }
  expect((await readdir(join(out, '_iceberg/metadata'))).sort()).toEqual([...named].sort())
}

/** Both tables and `verify` agree with the manifest. */
export async function expectInLine(world: TableWorld): Promise<void> {
  const shards = await world.shards()
  expect(await world.iceberg()).toEqual(shards)
  expect(await world.delta()).toEqual(shards)
  expect(await verifyDataSet(await world.pipeline())).toMatchObject({ ok: true, problems: [] })
}

export const deltaFile = (version: number): string => `_delta_log/${String(version).padStart(20, '0')}.json`

/** Paths of the shards in the last version of the Delta table, as its protocol says; every file has to be there. */
export async function deltaShards(out: string): Promise<string[]> {
  const names = (await readdir(join(out, '_delta_log'))).sort()
  expect(names.map((name) => `_delta_log/${name}`)).toEqual(names.map((_, version) => deltaFile(version)))
  const paths = new Set<string>()
  for (const name of names) {
    const lines = (await readFile(join(out, '_delta_log', name), 'utf8')).trimEnd().split('\n')
    for (const { add, remove } of lines.map((line) => JSON.parse(line))) {
      if (remove !== undefined) expect(paths.delete(decodeURIComponent(remove.path))).toBe(true)
      if (add !== undefined) paths.add(decodeURIComponent(add.path))
    }
  }
  for (const path of paths) expect(existsSync(join(out, path))).toBe(true)
  return [...paths].sort()
}
