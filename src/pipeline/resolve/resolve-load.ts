import { dirname, isAbsolute, resolve } from 'node:path'
import zlib from 'node:zlib'
import {
  type CatalogAuth,
  type CatalogSettings,
  type CsvFormat,
  type Format,
  type LoadSettings,
  type ParquetFormat,
  TABLE_FORMATS,
} from '../../core/index.ts'
import { shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { Path } from '../problems/tree.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { ADDRESSES, STORES, type StoreKind, storeOf } from '../stores.ts'

type LoadFile = PipelineFile['load']

/** @param folder of the pipeline file */
export function resolveLoad(
  file: PipelineFile,
  problems: Problems,
  { cwd, folder }: { readonly cwd: string; readonly folder: string },
): LoadSettings {
  const { load } = file
  const format = load.format === 'parquet' ? parquet(load, problems) : csv(load, problems)
  const fileMode = Number.parseInt(load.file_mode.slice(-3), 8)
  const pathAsGiven = load.path ?? `output/${file.name}`
  const store = storeOf(pathAsGiven)
  const located =
    store === undefined ? onDisk(pathAsGiven, cwd, problems) : inStore(store, load, pathAsGiven, problems)
  const beside = isAbsolute(pathAsGiven) ? located.path : resolve(folder, pathAsGiven)
  return {
    ...located,
    pathAsGiven,
    ...(store === undefined && beside !== located.path ? { besideFile: beside } : {}),
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
  if (formats.length > 0 && (kind === 'csv' || engine !== 'columnar'))
    problems.add(['load', 'table_formats'], 'goes with format: parquet and engine: columnar', 'key')
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
  const { token_url: tokenUrl, client_id_env, client_secret_env, scope = null } = oauth2
  return { kind: 'oauth2', tokenUrl, clientIdEnv: client_id_env, clientSecretEnv: client_secret_env, scope }
}

function parquet(load: LoadFile, problems: Problems): ParquetFormat {
  const { compression: given = 'snappy', parquet: settings } = load
  const engine = among('engine', ['columnar', 'parquetjs-lite'], load.engine, 'format parquet', problems)
  const isLite = engine === 'parquetjs-lite'
  // The types of the oldest supported version lack it.
  if (given === 'zstd' && Reflect.get(zlib, 'zstdCompressSync') === undefined)
    problems.add(
      ['load', 'compression'],
      `zstd needs Node 22.15 or newer, and this is ${process.version}; allowed here: none | snappy | gzip`,
    )
  const compressions = ['none', 'snappy', 'gzip', ...(isLite ? [] : (['zstd'] as const))] as const
  const at = (...keys: Path): Path => ['load', 'parquet', ...keys]
  if (isLite && settings.encodings === 'compact' && problems.given(at('encodings')))
    problems.add(at('encodings'), 'expected plain with engine parquetjs-lite, found "compact"')
  return {
    kind: 'parquet',
    engine,
    compression: among('compression', compressions, given, `engine ${engine}`, problems),
    // parquetjs-lite knows no others.
    encodings: isLite ? 'plain' : settings.encodings,
  }
}

function csv({ engine, compression = 'none', csv }: LoadFile, problems: Problems): CsvFormat {
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

type Located = Pick<LoadSettings, 'path' | 'location'>

const PATH = ['load', 'path']

function onDisk(given: string, cwd: string, problems: Problems): Located {
  const path = resolve(cwd, given)
  if (SHELL.test(given))
    problems.add(
      PATH,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
      'neither ~ nor a variable without braces is expanded, so a folder of that name would be made; write ${HOME} or ${NAME}',
    )
  if (dirname(path) === path)
    problems.add(
      PATH,
      `is the root of the file system, where other files are; expected a folder for the data set alone, found ${shownPath(given)}`,
    )
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given))
    problems.add(PATH, `expected a folder, ${ADDRESSES}, found ${shownPath(given)}`)
  return { path, location: { kind: 'disk', root: path } }
}

// Only shells expand these, and ~ not after `=`.
const SHELL = /^(?:~[^/]*|\$[A-Za-z_]\w*)(?:\/|$)/

// Every store allows these characters in keys, and no engine has to escape them.
const PREFIX = /^(?!(?:.*\/)?\.\.?(?:\/|$))[A-Za-z0-9._=-]+(?:\/[A-Za-z0-9._=-]+)*$/
// S3 allows 1,024 bytes a key; most of them are for the names of queries.
const MAX_PREFIX = 300

function inStore(kind: StoreKind, load: LoadFile, given: string, problems: Problems): Located {
  const { scheme, pattern, address, rule, location } = STORES[kind]
  const [, bucket = '', rest = ''] = pattern.exec(given) ?? []
  const prefix = rest.replace(/\/+$/, '')
  if (bucket === '') problems.add(PATH, `expected ${address} with ${rule}, found ${shownPath(given)}`)
  if (prefix !== '' && (prefix.length > MAX_PREFIX || !PREFIX.test(prefix)))
    problems.add(
      PATH,
      `expected a prefix of up to ${MAX_PREFIX} of A-Z, a-z, 0-9, ., _, =, - and single /, found ${shownPath(prefix)}`,
    )
  const { endpoint, allow_http }: { endpoint?: string | undefined; allow_http?: boolean } = load[kind] ?? {}
  problems.requireHttps(['load', kind, 'endpoint'], endpoint, 'rows', allow_http)
  return {
    path: `${scheme}://${bucket}${prefix === '' ? '' : `/${prefix}`}`,
    location: location(load[kind] as never, bucket, prefix),
  }
}

/** A path is no secret; an address in its place may hold a password. */
function shownPath(path: string): string {
  return /\/\/[^/]*@/.test(path) ? 'an address with a user (not shown)' : JSON.stringify(shown(path))
}
