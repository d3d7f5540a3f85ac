import type { Age, Micros } from './time.ts'

/** A pipeline file with every default resolved, every path made and every duration in milliseconds. */
export type Pipeline = {
  readonly name: string
  /** The file it was read from, for messages. */
  readonly file: string
  readonly service: ServiceSettings
  readonly extract: ExtractSettings
  readonly transform: TransformSettings
  readonly load: LoadSettings
}

export type ServiceSettings = {
  /** Host plus the fixed prefix segment; never ends in a slash. */
  readonly baseUrl: string
  readonly auth: Auth
  /** Whose pace and quota it is, where many processes share these; null: as the token test says. */
  readonly organization: string | null
  readonly searchPath: string
  readonly reportPath: string
  /** Where `check` may test the token for free; null: not configured. */
  readonly tokenTestUrl: string | null
  readonly requestsPerSecond: number
  /** The tier of everything that is no search: tokens, reports. */
  readonly basicRequestsPerSecond: number
  readonly timeoutMs: number
  readonly retries: number
  readonly maxResponseBytes: number
}

/** Secrets are read by name when they are needed, so that a Pipeline can be printed and compared. */
export type Auth =
  | { readonly kind: 'token'; readonly tokenEnv: string }
  | {
      readonly kind: 'api-key'
      readonly apiKeyEnv: string
      readonly tokenUrl: string
      readonly tenantId: number | null
      /** How long an exchanged token lives. */
      readonly tokenLifetimeMs: number
    }

export type ExtractSettings = {
  readonly resource: Resource
  readonly queries: readonly Query[]
  readonly windows: WindowSettings | null
  /** The setting of the pipeline file, where a flag replaces it for this run; null: the same. */
  readonly whole: Wanted | null
  readonly order: Order
  /** The most rows that are requested with a page. */
  readonly pageSize: number
  readonly include: readonly string[]
  /** Chains in flight. */
  readonly concurrency: number
  /** Requests that one run may send; null: no budget. */
  readonly maxRequests: number | null
  /** Searches of the quota that all runs of the data set may spend in a calendar month (UTC); null: no such share. */
  readonly monthlySearches: number | null
  /** Searches of the quota that are to be left, by what the service says; null: never mind. */
  readonly minSearchesRemaining: number | null
}

/** The order in which the service goes through its rows, and a chain through its windows. */
export type Order = 'asc' | 'desc'

/** What is to be exported: queries × windows. */
export type Wanted = Pick<ExtractSettings, 'queries' | 'windows'>

export type Resource = 'credentials' | 'reports'

/**
 * The five query kinds of the credential search, and the two ways to request reports.
 * A secret query carries the name of its environment variable, never the value.
 */
export type Query =
  | ((
      | { readonly type: 'domain'; readonly fqdn: string }
      | { readonly type: 'auth_domain'; readonly fqdn: string }
      | { readonly type: 'email'; readonly email: string }
      | { readonly type: 'keyword'; readonly keyword: string }
      | { readonly type: 'secret'; readonly secretEnv: string }
    ) &
      GivenName)
  | { readonly type: 'report'; readonly id: number }
  | { readonly type: 'reports' }

/** The user's name for a query; without it the query is named after its value. */
type GivenName = { readonly as?: string }

/**
 * A query with the name that it goes by in paths, keys, logs and messages (`domain.acme.com`). Under a policy that
 * hides identities the name can take the mask key, so a pipeline as it is read has none.
 */
export type NamedQuery = Query & { readonly name: string }

/** A pipeline whose queries have their names: what everything that looks at a data set works with. */
export type NamedPipeline = Omit<Pipeline, 'extract'> & {
  readonly extract: Omit<ExtractSettings, 'queries' | 'whole'> & {
    readonly queries: readonly NamedQuery[]
    readonly whole: (Omit<Wanted, 'queries'> & { readonly queries: readonly NamedQuery[] }) | null
  }
}

export type WindowSettings = {
  readonly from: Micros
  readonly until: Micros | 'now'
  /** null: one window over the whole range. */
  readonly every: WindowLength | null
  /** With `until: now`, windows that ended less than this ago wait. */
  readonly lagMs: number
  /** Windows that one chain goes through at most; null: all that are adjacent. */
  readonly perChain: number | null
}

// Each is a partition, for each query: more would not fit into memory.
export const MAX_WINDOWS = 1_000_000

export type WindowLength =
  | { readonly unit: 'hour' | 'day'; readonly count: number }
  | { readonly unit: 'week' | 'month' | 'year' }

export const SECRET_POLICIES = ['redact', 'drop', 'partial', 'hmac', 'plaintext'] as const
export const IDENTITY_POLICIES = ['keep', 'hmac', 'drop'] as const
export const INVALID_POLICIES = ['quarantine', 'fail'] as const

export type SecretPolicy = (typeof SECRET_POLICIES)[number]
export type IdentityPolicy = (typeof IDENTITY_POLICIES)[number]
export type InvalidPolicy = (typeof INVALID_POLICIES)[number]

export type TransformSettings = {
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  /** Environment variable that holds the HMAC key. */
  readonly maskKeyEnv: string
  /** Names in output order, after masking policies have taken columns away. */
  readonly columns: readonly string[]
  /** Those of them that `transform.extra_columns` adds. */
  readonly extraColumns: readonly ExtraField[]
  readonly onInvalid: InvalidPolicy
  /** Beyond it the partition fails. */
  readonly maxQuarantined: QuarantineLimit
}

/** Limit of quarantined items of one partition: a count, or a percentage. */
export type QuarantineLimit =
  | { readonly kind: 'count'; readonly items: number }
  | { readonly kind: 'share'; readonly percent: number }

/** A field of a credential that is a column only when `transform.extra_columns` names it. */
export type ExtraField = {
  readonly name: string
  /** Names of members, from the credential on. */
  readonly path: readonly string[]
  readonly type: ExtraType | 'strings'
  /** Whether the service's documentation has the field; null for one that only the pipeline file knows. */
  readonly meaning: string | null
}

/** `json`: compact JSON text. */
export const EXTRA_TYPES = ['string', 'int64', 'boolean', 'timestamp', 'json'] as const
type ExtraType = (typeof EXTRA_TYPES)[number]

/** `compact` encodings are smaller; `plain` ones are read by everything that reads Parquet. */
export type Encodings = 'compact' | 'plain'
export type Compression = 'none' | 'snappy' | 'gzip' | 'zstd'
export type PartitionBy = 'query' | 'window'

/** Where a data set is: a directory, or a prefix of a bucket. */
export type DataSetLocation =
  | { readonly kind: 'disk'; readonly root: string }
  | {
      readonly kind: 's3'
      readonly bucket: string
      /** Without slashes at either end; empty: the bucket itself. */
      readonly prefix: string
      /** null: as the environment and `~/.aws` have it, or AWS itself. */
      readonly endpoint: string | null
      /** null: as the environment and `~/.aws` have it. */
      readonly region: string | null
      /** Whether requests name the bucket in their path instead of the host; null: unless the endpoint is AWS's own. */
      readonly pathStyle: boolean | null
      /** Whether rows may travel to another machine unencrypted. */
      readonly allowHttp: boolean
      /** Absolute path of the folder in which `_state` lies; null: in the bucket as well. */
      readonly stateRoot: string | null
    }

export type LoadSettings = {
  /** Absolute path of the data set, or its `s3://` address. */
  readonly path: string
  readonly place: DataSetLocation
  /** The same as the file gives it, for messages. */
  readonly pathAsGiven: string
  readonly format: Format
  readonly partitionBy: readonly PartitionBy[]
  readonly shardRows: number
  /** How old a partition may become before `prune` takes it away; null: any age. */
  readonly keep: Age | null
  readonly fileMode: number
  readonly dirMode: number
}

export type Format =
  | {
      readonly kind: 'parquet'
      readonly engine: 'columnar' | 'parquetjs-lite'
      readonly compression: Compression
      readonly encodings: Encodings
      /** Columns that get a bloom filter. */
      readonly bloomFilters: readonly string[]
    }
  | {
      readonly kind: 'csv'
      readonly engine: 'columnar' | 'csv-stringify'
      readonly compression: 'none' | 'gzip'
      readonly escapeFormulas: boolean
    }
