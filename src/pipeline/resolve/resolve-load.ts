import { dirname, isAbsolute, resolve } from 'node:path'
import zlib from 'node:zlib'
import {
  type CatalogAuth,
  type CatalogSettings,
  type Format,
  type LoadSettings,
  TABLE_FORMATS,
} from '../../core/index.ts'
import { shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { ADDRESSES, STORE_KINDS, STORES, type StoreKind, storeOf } from '../stores/index.ts'

type LoadFile = PipelineFile['load']

type LoadContext = {
  readonly cwd: string
  /** Of the pipeline file. */
  readonly folder: string
}

/** Format, location and permissions of the data set. */
export function resolveLoad(
  file: PipelineFile,
  columns: readonly string[],
  problems: Problems,
  { cwd, folder }: LoadContext,
): LoadSettings {
  const { load } = file
  const format = load.format === 'parquet' ? parquet(load, columns, problems) : csv(load, problems)
  const fileMode = Number.parseInt(load.file_mode.slice(-3), 8)
  const located = resolveLocation(file, problems, cwd, folder)
  return {
    ...located,
    format,
    partitionBy: (['query', 'window'] as const).filter((by) => load.partition_by.includes(by)),
    shardRows: load.shard_rows,
    tables: resolveTables(load, format, located.path, problems),
    catalog: load.catalog === undefined ? null : resolveCatalog(load.catalog, file.name, problems),
    keep: load.keep ?? null,
    fileMode,
    // A user who may read the files may also enter the folders.
    dirMode: fileMode | ((fileMode & 0o444) >> 2),
  }
}

function resolveTables(
  load: LoadFile,
  { kind, engine }: Format,
  path: string,
  problems: Problems,
): LoadSettings['tables'] {
  const formats = TABLE_FORMATS.filter((format) => load.table_formats.includes(format))
  if (formats.length > 0 && (kind === 'csv' || engine !== 'columnar')) {
    problems.add(['load', 'table_formats'], 'goes with format: parquet and engine: columnar', 'key')
    const [key, found] = kind === 'csv' ? ['format', kind] : ['engine', engine]
    problems.add(['load', key], `expected no table_formats beside it, found "${found}"`)
  }
  const root = path.includes('://') ? path : `file://${path.replaceAll('\\', '/').replace(/^(?!\/)/, '/')}`
  return { formats, root: load.table_location ?? root, snapshots: load.table_snapshots }
}

type CatalogFile = NonNullable<LoadFile['catalog']>

function resolveCatalog(catalog: CatalogFile, name: string, problems: Problems): CatalogSettings {
  const { uri, oauth2, token_env: tokenEnv } = catalog
  const at = ['load', 'catalog']
  problems.requireHttps([...at, 'uri'], uri, 'tokens', catalog.allow_http)
  problems.requireHttps([...at, 'oauth2', 'token_url'], oauth2?.token_url, 'tokens', catalog.allow_http)
  if (tokenEnv !== undefined && oauth2 !== undefined)
    problems.add(['load', 'catalog', 'token_env'], 'expected token_env or oauth2, found both', 'key')
  return {
    uri,
    warehouse: catalog.warehouse ?? null,
    namespace: catalog.namespace.split('.'),
    table: catalog.table ?? name,
    auth: catalogAuth(catalog),
  }
}

function catalogAuth({ token_env: tokenEnv, oauth2 }: CatalogFile): CatalogAuth | null {
  if (tokenEnv !== undefined) return { kind: 'token', tokenEnv }
  if (oauth2 === undefined) return null
  const { token_url, client_id_env, client_secret_env, scope = null } = oauth2
  return {
    kind: 'oauth2',
    tokenUrl: token_url,
    clientIdEnv: client_id_env,
    clientSecretEnv: client_secret_env,
    scope,
  }
}

function parquet(load: LoadFile, columns: readonly string[], problems: Problems): Format {
  const { compression: given = 'snappy', parquet: settings } = load
  const engine = among('engine', ['columnar', 'parquetjs-lite'], load.engine, 'format parquet', problems)
  const isLite = engine === 'parquetjs-lite'
  const { bloom_filters: bloomFilters } = settings
  // The types of the oldest supported version lack it.
  if (given === 'zstd' && Reflect.get(zlib, 'zstdCompressSync') === undefined) {
    problems.add(
      ['load', 'compression'],
      `zstd needs Node 22.15 or newer, and this is ${process.version}; allowed here: none | snappy | gzip`,
    )
  }
  const compressions = ['none', 'snappy', 'gzip', ...(isLite ? [] : (['zstd'] as const))] as const
  const compression = among('compression', compressions, given, `engine ${engine}`, problems)
  const path = ['load', 'parquet', 'encodings']
  if (isLite && settings.encodings === 'compact' && problems.given(path))
    problems.add(path, 'expected plain with engine parquetjs-lite, found "compact"')
  if (isLite && bloomFilters.length > 0)
    problems.add(['load', 'parquet', 'bloom_filters'], 'engine parquetjs-lite writes no bloom filters')
  for (const [i, column] of bloomFilters.entries()) {
    if (columns.includes(column)) continue
    const path = ['load', 'parquet', 'bloom_filters', i]
    problems.add(path, `expected one of ${columns.join(', ')}, found ${problems.found(path)}`)
  }
  // parquetjs-lite knows no others.
  const encodings = isLite ? 'plain' : settings.encodings
  return { kind: 'parquet', engine, compression, encodings, bloomFilters: [...new Set(bloomFilters)] }
}

function csv({ engine, compression = 'none', csv }: LoadFile, problems: Problems): Format {
  return {
    kind: 'csv',
    engine: among('engine', ['columnar', 'csv-stringify'], engine, 'format csv', problems),
    compression: among('compression', ['none', 'gzip'], compression, 'format csv', problems),
    escapeFormulas: csv.escape_formulas,
  }
}

/** The value of a key if the format or engine allows it; others are reported. */
function among<const Value extends string>(
  key: string,
  allowed: readonly [Value, ...Value[]],
  found: string,
  beside: string,
  problems: Problems,
): Value {
  const value = allowed.find((each) => each === found)
  if (value === undefined)
    problems.add(['load', key], `expected ${allowed.join(' | ')} with ${beside}, found "${found}"`)
  return value ?? allowed[0]
}

// Every store allows these characters in keys, and no engine has to escape them.
const PREFIX = /^[A-Za-z0-9._=-]+(?:\/[A-Za-z0-9._=-]+)*$/
// S3 allows 1,024 bytes a key; most of them are for the names of queries.
const MAX_PREFIX = 300

/** The location of the data set: a folder, or a prefix of a bucket; and of its state, if it is separate. */
function resolveLocation(
  file: PipelineFile,
  problems: Problems,
  cwd: string,
  folder: string,
): Pick<LoadSettings, 'path' | 'pathAsGiven' | 'besideFile' | 'location'> {
  const pathAsGiven = file.load.path ?? `output/${file.name}`
  const store = storeOf(pathAsGiven)
  for (const kind of STORE_KINDS) {
    if (file.load[kind] === undefined || kind === store) continue
    const start = `${STORES[kind].scheme}://`
    problems.add(['load', kind], `goes with a load.path that begins with ${start}`, 'key')
  }
  if (store !== undefined) return bucketLocation(store, file, pathAsGiven, problems)
  if (HOME.test(pathAsGiven)) problems.add(['load', 'path'], homeText(pathAsGiven))
  const path = resolve(cwd, pathAsGiven)
  if (dirname(path) === path) {
    problems.add(
      ['load', 'path'],
      `is the root of the file system, where other files are; expected a folder for the data set alone, found ${shownPath(pathAsGiven)}`,
    )
  } else if (/^[a-z][a-z0-9+.-]*:\/\//i.test(pathAsGiven)) {
    problems.add(['load', 'path'], `expected a folder, ${ADDRESSES}, found ${shownPath(pathAsGiven)}`)
  }
  const beside = isAbsolute(pathAsGiven) ? path : resolve(folder, pathAsGiven)
  return {
    path,
    pathAsGiven,
    ...(beside === path ? {} : { besideFile: beside }),
    location: { kind: 'disk', root: path },
  }
}

// Only shells expand these, and ~ not after `=`.
const HOME = /^(?:~[^/]*|\$[A-Za-z_]\w*)(?:\/|$)/

function homeText(given: string): string {
  const [, name, below = ''] = /^\$(\w+)(.*)/s.exec(given) ?? []
  if (name !== undefined)
    return `a variable is expanded only in braces, so a folder of that name would be made; write \${${name}}${shown(below)}`
  const rest = given.startsWith('~/') ? given.slice(1) : ''
  return `~ is not expanded here, so a folder of that name would be made; write \${HOME}${shown(rest)}`
}

function bucketLocation(
  kind: StoreKind,
  { load }: PipelineFile,
  pathAsGiven: string,
  problems: Problems,
): Pick<LoadSettings, 'path' | 'pathAsGiven' | 'location'> {
  const { scheme, pattern, address, rule, location } = STORES[kind]
  const [, bucket = '', rest = ''] = pattern.exec(pathAsGiven) ?? []
  const prefix = rest.replace(/\/+$/, '')
  if (bucket === '') {
    problems.add(['load', 'path'], `expected ${address} with ${rule}, found ${shownPath(pathAsGiven)}`)
  } else if (
    prefix !== '' &&
    (prefix.length > MAX_PREFIX || !PREFIX.test(prefix) || /(?:^|\/)\.\.?(?:\/|$)/.test(prefix))
  ) {
    problems.add(
      ['load', 'path'],
      `expected a prefix of up to ${MAX_PREFIX} of A-Z, a-z, 0-9, ., _, =, - and single /, found ${shownPath(prefix)}`,
    )
  }
  const path = prefix === '' ? `${scheme}://${bucket}` : `${scheme}://${bucket}/${prefix}`
  const { endpoint, allow_http }: { endpoint?: string | undefined; allow_http?: boolean } = load[kind] ?? {}
  problems.requireHttps(['load', kind, 'endpoint'], endpoint, 'rows', allow_http)
  return { path, pathAsGiven, location: location(load[kind] as never, bucket, prefix) }
}

/** A path is no secret; an address in its place may hold a password. */
function shownPath(path: string): string {
  return /\/\/[^/]*@/.test(path) ? 'an address with a user (not shown)' : JSON.stringify(shown(path))
}
