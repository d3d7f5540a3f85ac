import type { IdentityPolicy, SecretPolicy } from './policies.ts'
import { hidesIdentity, type NamedQuery, type Query } from './queries.ts'
import { type AddressKey, type Resource, rulesOf } from './resources.ts'
import type { Age, Micros } from './time.ts'

/** A pipeline file after loading: defaults are resolved, paths are absolute, durations are in milliseconds. */
export type Pipeline = {
  readonly name: string
  /** Path of the pipeline file, for messages. */
  readonly file: string
  /** Where the keys of the file are, for messages: `acme.yaml:9:3`, or a flag. See {@link locationOf}. */
  readonly locations: Readonly<Record<string, string>>
  /** The key of each secret query by its variable: `extract.queries[3].secret_env`. */
  readonly secretKeys: Readonly<Record<string, string>>
  readonly service: ServiceSettings
  readonly extract: ExtractSettings
  readonly transform: TransformSettings
  readonly load: LoadSettings
}

type Located = Pick<Pipeline, 'file' | 'locations'>

/** The first of these keys that the file or a flag sets; if none is set, the first. */
export function keySet({ locations }: Located, ...keys: readonly [string, ...string[]]): string {
  return keys.find((key) => locations[key] !== undefined) ?? keys[0]
}

/** Where the first of these keys that is set comes from; if none is, where its section does, or else the file. */
export function locationOf(pipeline: Located, ...keys: readonly [string, ...string[]]): string {
  const { file, locations } = pipeline
  const path = keySet(pipeline, ...keys).split('.')
  for (; path.length > 0; path.pop()) {
    const location = locations[path.join('.')]
    if (location !== undefined) return location
  }
  return file
}

/** Whether all of its queries are feeds: a pipeline has one resource. */
export function isOfFeeds({ extract }: Pick<Pipeline, 'extract'>): boolean {
  return rulesOf(extract.resource).reading === 'feed'
}

/** Whether a value is secret or hidden. Then no text of the service is quoted: it may repeat it in any spelling. */
export function hidesQueries({ extract, transform }: Pick<Pipeline, 'extract' | 'transform'>): boolean {
  const queries = [...extract.queries, ...(extract.unfiltered?.queries ?? [])]
  return queries.some((query) => query.type === 'secret' || hidesIdentity(query, transform.identity))
}

export type ServiceSettings = {
  /** Host plus the fixed prefix segment; never ends in a slash. */
  readonly baseUrl: string
  readonly auth: Auth
  /** The organization whose rate limit and quota the processes share; null: as the token test reports. */
  readonly organization: string | null
  /** Where rows are requested, by the keys of the file: URLs, or paths below `baseUrl`. */
  readonly addresses: Readonly<Record<AddressKey, string>>
  readonly requestsPerSecond: number
  /** Rate limit of all requests except searches: tokens, reports. */
  readonly basicRequestsPerSecond: number
  /** Rows that one search of the quota covers; null: a page is one search. */
  readonly rowsPerSearch: number | null
  readonly timeoutMs: number
  readonly retries: number
  readonly maxResponseBytes: number
}

/**
 * Where the secret is: the name of a variable, or the absolute path of a file. Never the secret, so that a Pipeline can be
 * printed and compared.
 */
export type Auth =
  | { readonly kind: 'token'; readonly secretIn: string }
  | {
      readonly kind: 'api-key'
      readonly secretIn: string
      readonly tokenUrl: string
      readonly tenantId: number | null
    }

/** The keys that say where the secret is, for {@link keySet}: those of files before the default variable. */
export const AUTH_KEYS = [
  'service.token_file',
  'service.api_key_file',
  'service.api_key_env',
  'service.token_env',
] as const

export type ExtractSettings = {
  readonly resource: Resource
  readonly queries: readonly Query[]
  readonly windows: WindowSettings | null
  /** Queries and windows of the pipeline file, if flags replace them for this run; null: no flag does. */
  readonly unfiltered: Selection | null
  readonly order: Order
  /** Maximum number of rows requested with a page. */
  readonly pageSize: number
  readonly include: readonly string[]
  /** Number of chains that run at a time. */
  readonly concurrency: number
  /** Requests that one run may send; null: no budget. */
  readonly maxRequests: number | null
  /** Searches of the quota that all runs of the data set may spend in a calendar month (UTC); null: no limit. */
  readonly monthlySearches: number | null
  /** Searches of the quota to leave unspent, by the service's own count; null: no limit. */
  readonly minSearchesRemaining: number | null
}

export type Order = 'asc' | 'desc'

export type Selection = Pick<ExtractSettings, 'queries' | 'windows'>

/** A pipeline whose queries have names. Everything that accesses a data set takes this type. */
export type NamedPipeline = Omit<Pipeline, 'extract'> & {
  readonly extract: Omit<ExtractSettings, 'queries' | 'unfiltered'> & {
    readonly queries: readonly NamedQuery[]
    readonly unfiltered: (Omit<Selection, 'queries'> & { readonly queries: readonly NamedQuery[] }) | null
  }
}

export type WindowSettings = {
  readonly from: Micros
  readonly until: Micros | 'now'
  /** null: one window over the whole range. */
  readonly every: WindowLength | null
  /** With `until: now`, a window is exported once it ended at least this long ago. */
  readonly lagMs: number
  /** Maximum number of windows of a chain; null: all that are adjacent. */
  readonly perChain: number | null
}

// Each window is a partition of each query. More partitions would not fit into memory.
export const MAX_WINDOWS = 1_000_000

export type WindowLength =
  | { readonly unit: 'hour' | 'day'; readonly count: number }
  | { readonly unit: 'week' | 'month' | 'year' }

export const INVALID_POLICIES = ['quarantine', 'fail'] as const

export const TABLE_FORMATS = ['iceberg', 'delta'] as const

export type TableFormat = (typeof TABLE_FORMATS)[number]
type InvalidPolicy = (typeof INVALID_POLICIES)[number]

export type TransformSettings = {
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  /** Environment variable that holds the HMAC key. */
  readonly maskKeyEnv: string
  /** Names in output order, without the columns that masking policies remove. */
  readonly columns: readonly string[]
  readonly extraColumns: readonly ExtraField[]
  /** Columns that some shards of the data set lack, so that they may be null; of a pipeline file: none. */
  readonly lacking: readonly string[]
  /** What is said of secrets before they are masked, in columns after all others; null: nothing. */
  readonly secretFacts: SecretFacts | null
  readonly onInvalid: InvalidPolicy
  /** The partition fails if more items are quarantined. */
  readonly maxQuarantined: QuarantineLimit
}

/** The policy that plain secrets are held against. */
export type SecretFacts = {
  readonly policy: {
    /** In code points. */
    readonly minLength: number
    /** How many of the four classes of characters: upper, lower, digit, other. */
    readonly classes: number
  }
}

export type QuarantineLimit =
  | { readonly kind: 'count'; readonly items: number }
  | { readonly kind: 'share'; readonly percent: number }

/** A field of a credential that is a column only when `transform.extra_columns` names it. */
export type ExtraField = {
  readonly name: string
  /** Names of nested members, starting at the credential. */
  readonly path: readonly string[]
  readonly type: ExtraType | 'strings'
  /** Description from the service's documentation; null: the field is not documented. */
  readonly meaning: string | null
}

/** `json`: compact JSON text. */
export const EXTRA_TYPES = ['string', 'int64', 'boolean', 'timestamp', 'json'] as const
type ExtraType = (typeof EXTRA_TYPES)[number]

/** `compact` encodings are smaller; every Parquet reader supports the `plain` ones. */
export type Encodings = 'compact' | 'plain'
export type Compression = 'none' | 'snappy' | 'gzip' | 'zstd'
export type PartitionBy = 'query' | 'window'

export type DataSetLocation =
  | { readonly kind: 'disk'; readonly root: string }
  | {
      readonly kind: 's3'
      readonly bucket: string
      /** Without slashes at either end; empty: the bucket itself. */
      readonly prefix: string
      /** null: from the environment or `~/.aws`, else AWS itself. */
      readonly endpoint: string | null
      /** null: from the environment or `~/.aws`. */
      readonly region: string | null
      /** Whether the bucket is in the path of a URL instead of the host; null: yes, except for endpoints of AWS. */
      readonly pathStyle: boolean | null
      /** Whether rows may travel to another machine unencrypted. */
      readonly allowHttp: boolean
    }
  | {
      readonly kind: 'azure'
      readonly container: string
      readonly prefix: string
      /** null: that of the storage account in the environment. */
      readonly endpoint: string | null
    }

export type LoadSettings = {
  /** Absolute path of the data set, or its `s3://` or `az://` address. */
  readonly path: string
  readonly location: DataSetLocation
  /** The path as the pipeline file spells it, for messages. */
  readonly pathAsGiven: string
  /** Where a relative path would lead from the folder of the pipeline file, if that is elsewhere; for messages. */
  readonly besideFile?: string
  readonly format: Format
  readonly partitionBy: readonly PartitionBy[]
  readonly shardRows: number
  readonly tables: TableSettings
  /** The catalog that shows the Iceberg table; null: none. */
  readonly catalog: CatalogSettings | null
  /** `prune` removes partitions older than this; null: none. */
  readonly keep: Age | null
  readonly fileMode: number
  readonly dirMode: number
}

export type TableSettings = {
  readonly formats: readonly TableFormat[]
  /** Address of the data set as readers of the tables see it, without a slash at the end. */
  readonly root: string
  /** How many snapshots are kept. */
  readonly snapshots: number
}

/** A table in an Iceberg REST catalog. */
export type CatalogSettings = {
  /** Address of the catalog, without a slash at the end: `/v1/config` follows. */
  readonly uri: string
  readonly warehouse: string | null
  /** Its levels, outermost first. */
  readonly namespace: readonly string[]
  readonly table: string
  /** null: the catalog asks for none. */
  readonly auth: CatalogAuth | null
}

/** Secrets by the names of their variables. */
export type CatalogAuth =
  | { readonly kind: 'token'; readonly tokenEnv: string }
  | {
      readonly kind: 'oauth2'
      readonly tokenUrl: string
      readonly clientIdEnv: string
      readonly clientSecretEnv: string
      /** null: the server's default. */
      readonly scope: string | null
    }

export type Format = ParquetFormat | CsvFormat

export type ParquetFormat = {
  readonly kind: 'parquet'
  readonly engine: 'columnar' | 'parquetjs-lite'
  readonly compression: Compression
  readonly encodings: Encodings
}

export type CsvFormat = {
  readonly kind: 'csv'
  readonly engine: 'columnar' | 'csv-stringify'
  readonly compression: 'none' | 'gzip'
  readonly escapeFormulas: boolean
}

/** Duration of one response: rows requested, and milliseconds. */
export type ResponseTime = readonly [size: number, ms: number]

/** What responses have shown about an endpoint. */
export type Measures = {
  /** Rows requested with the last served page; null: no page was served. */
  readonly pageSize: number | null
  /** Rows of the last page, where a larger one did not come; null: the largest came, or was not tried. */
  readonly limit: number | null
  /** Whether a cursor is only accepted with the size of the page that it came with. */
  readonly bindsSizes: boolean
  /** Of the last {@link MAX_TIMES} responses since `limit` changed. */
  readonly times: readonly ResponseTime[]
  /** Whether responses report how many searches are left; null: no response yet. */
  readonly reportsSearchesLeft: boolean | null
}

export const NOT_MEASURED: Measures = {
  pageSize: null,
  limit: null,
  bindsSizes: false,
  times: [],
  reportsSearchesLeft: null,
}

export const MAX_TIMES = 32

/** Figures for status and summaries; null: not measured. */
export type ServiceFigures = Pick<Measures, 'pageSize'>

/** Searches of the quota that a page costs. @param rowsPerSearch rows that one covers; null: a page is one search */
export function searchesOf(rows: number, rowsPerSearch: number | null): number {
  return rowsPerSearch === null ? 1 : Math.max(1, Math.ceil(rows / rowsPerSearch))
}
