import { crc32 } from 'node:zlib'
import {
  type ExtractSettings,
  type ExtraField,
  type Format,
  IDENTITY_POLICIES,
  type IdentityPolicy,
  type Resource,
  SECRET_POLICIES,
  type SecretPolicy,
  type TransformSettings,
} from '../core/index.ts'

export type ColumnType = 'int64' | 'text' | 'boolean' | 'timestamp' | 'list'

export type ColumnSpec = {
  readonly name: string
  readonly type: ColumnType
  readonly nullable: boolean
  /** A description of one line, for comments in warehouses. */
  readonly meaning: string
}

/** Nulls, bytes and bounds of a column, over all row groups of a Parquet shard. */
export type ColumnStatistics = {
  readonly name: string
  readonly type: ColumnType
  /** After compression. */
  readonly bytes: number
  readonly nulls: number
  /** Integers and times (in microseconds) are bigints; null: not every row group has them. */
  readonly bounds: { readonly min: bigint | string; readonly max: bigint | string } | null
}

/** Names of the types in `_manifest.json`. */
export const TYPE_NAMES: Record<ColumnType, string> = {
  int64: 'INT64',
  text: 'STRING',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP(MICROS, UTC)',
  list: 'LIST<STRING>',
}

/** Name of a type in files of a format: one engine supports only milliseconds. */
export function typeName(type: ColumnType, { engine }: Format): string {
  return type === 'timestamp' && engine === 'parquetjs-lite' ? 'TIMESTAMP(MILLIS, UTC)' : TYPE_NAMES[type]
}

/**
 * In output order. Optional fields are columns only if `extract.include` (`included`) names them.
 * Source: service spec 2.1–2.3, and the nullability in the public API where the spec does not specify it.
 */
export function allColumns(resource: Resource, included: readonly string[]): readonly ColumnSpec[] {
  const own = ownFields(resource, included).map(extraSpec)
  return COLUMNS[resource].flatMap((column) => {
    if (column.name === LAST_OF_ITEM) return [column, ...own]
    return !OPTIONAL_FIELDS.has(column.name) || included.includes(column.name) ? [column] : []
  })
}

type ColumnSettings = {
  readonly extract: Pick<ExtractSettings, 'resource' | 'include'>
  readonly transform: Pick<TransformSettings, 'columns' | 'extraColumns'> &
    Partial<Pick<TransformSettings, 'lacking'>>
}

/** The columns of a pipeline with these names, in output order. */
export function columnsOf(
  { extract, transform }: ColumnSettings,
  names: readonly string[] = transform.columns,
): readonly ColumnSpec[] {
  const columns = [
    ...allColumns(extract.resource, extract.include),
    ...transform.extraColumns.map(extraSpec),
    ...FACT_COLUMNS,
  ]
  const { lacking = [] } = transform
  return columns.flatMap((column) => {
    if (!names.includes(column.name)) return []
    return lacking.includes(column.name) ? [{ ...column, nullable: true }] : [column]
  })
}

/**
 * Those that `transform.extra_columns` (`extra`) or `extract.include` may name, and those of one resource.
 * Source: public documentation; all are nullable.
 */
const MORE_FIELDS: readonly MoreField[] = [
  [19, 'extra', 'event_uid', 'string', 'identifier of the event that the credential came with'],
  [
    20,
    'extra',
    'credential_hash',
    'string',
    "the service's own digest of the credential, by which it is ignored or remediated there",
  ],
  [21, 'extra', 'source_pii_tags', 'strings', 'kinds of personal data in the leak', ['source', 'pii_tags']],
  [22, 'extra', 'source_url', 'string', 'address of the leak', ['source', 'url']],
  [25, 'feed', 'remediated_at', 'timestamp', 'when the credential was remediated; null: not yet'],
  [26, 'feed', 'ignored_at', 'timestamp', 'when the credential was ignored; null: it is not'],
]

/** With its `field_id`. Its path is its name, if none is given. */
type MoreField = readonly [
  id: number,
  of: 'extra' | 'include' | Resource,
  name: string,
  type: ExtraField['type'],
  meaning: string,
  path?: readonly string[],
]

function moreFields(isWanted: (of: MoreField[1], name: string) => boolean): readonly ExtraField[] {
  return MORE_FIELDS.flatMap(([, of, name, type, meaning, path = [name]]) =>
    isWanted(of, name) ? [{ name, path, type, meaning }] : [],
  )
}

export const KNOWN_EXTRAS = moreFields((of) => of === 'extra')

/** Those of the resource, and those that are included. They are read as additional columns are. */
export function ownFields(resource: Resource, included: readonly string[]): readonly ExtraField[] {
  return moreFields((of, name) => of === resource || (of === 'include' && included.includes(name)))
}

const EXTRA_COLUMN_TYPES: Record<ExtraField['type'], ColumnType> = {
  string: 'text',
  int64: 'int64',
  boolean: 'boolean',
  timestamp: 'timestamp',
  json: 'text',
  strings: 'list',
}

function extraSpec({ name, path, type, meaning }: ExtraField): ColumnSpec {
  const field = `the field ${path.join('.')}${type === 'json' ? ', as JSON' : ''}`
  return column(name, EXTRA_COLUMN_TYPES[type], true, meaning ?? field)
}

export function droppedColumns(secret: SecretPolicy, identity: IdentityPolicy): readonly string[] {
  return [
    ...(SECRET_POLICIES[secret]?.dropsColumn ? ['hash'] : []),
    ...(IDENTITY_POLICIES[identity]?.dropsColumn ? ['identity_name'] : []),
  ]
}

/** Fields that the service sends only when `include` names them. */
export const OPTIONAL_FIELDS: ReadonlySet<string> = new Set([
  ...['known_password_id', 'auth_domains', 'urls'],
  ...moreFields((of) => of === 'include').map(({ name }) => name),
])

/** Table formats identify a column by its `field_id`, which never changes. A new column gets the next number. */
type Field = readonly [id: number, name: string, type: ColumnType, nullable: boolean, meaning: string]

const CREDENTIAL_FIELDS: readonly Field[] = [
  [1, 'id', 'int64', false, 'identifier of the credential'],
  [2, 'domain', 'text', true, 'domain of the identity'],
  [
    3,
    'identity_name',
    'text',
    false,
    'the identity, an e-mail address as a rule, as transform.identity says',
  ],
  [4, 'hash', 'text', true, 'the leaked secret, plain or hashed at the source, as transform.secret says'],
  [5, 'hash_type', 'text', true, 'how the source had hashed the secret'],
  [6, 'imported_at', 'timestamp', false, 'when the service imported the credential'],
  [7, 'known_password_id', 'text', true, 'identifier of a known password'],
  [8, 'source_id', 'text', false, 'identifier of the leak'],
  [9, 'source_name', 'text', true, 'name of the leak'],
  [10, 'source_description_en', 'text', true, 'description of the leak, English'],
  [11, 'source_description_fr', 'text', true, 'description of the leak, French'],
  [12, 'source_is_alert_enabled', 'boolean', true, 'whether the leak raises alerts'],
  [13, 'source_breached_at', 'timestamp', true, 'when the source was breached'],
  [14, 'source_leaked_at', 'timestamp', true, 'when the data was leaked'],
  [15, 'query_type', 'text', false, 'kind of the query that found the row'],
  [16, 'query_value', 'text', false, 'value of the query; a secret is masked'],
  [17, 'auth_domains', 'list', true, 'host names that the credential logs in to'],
  [18, 'urls', 'list', true, 'addresses that the credential logs in to'],
]

const CREDENTIAL_COLUMNS = CREDENTIAL_FIELDS.map(([, ...field]) => column(...field))

/** {@link ownFields} follow it. */
const LAST_OF_ITEM = 'source_leaked_at'

/** They share `id` with credentials. */
const REPORT_FIELDS: readonly Field[] = [
  [1, 'id', 'int64', false, 'identifier of the report'],
  [101, 'format_type', 'text', false, 'format of the content'],
  [102, 'title', 'text', false, 'title'],
  [103, 'subtitle', 'text', true, 'subtitle'],
  [104, 'summary', 'text', true, 'summary'],
  [105, 'content', 'text', true, 'the report itself'],
  [106, 'tags', 'list', true, 'tags'],
  [107, 'highlights', 'list', true, 'highlights'],
  [108, 'related_activity_uids', 'list', true, 'identifiers of related activities'],
  [109, 'prompt_preset_uid', 'text', true, 'identifier of the prompt preset'],
  [110, 'created_at', 'timestamp', true, 'when it was created'],
  [111, 'published_at', 'timestamp', true, 'when it was published'],
  [112, 'updated_at', 'timestamp', true, 'when it was last changed'],
  [113, 'reading_time', 'int64', true, 'reading time; the service does not say in which unit'],
  [114, 'tenant_id', 'int64', true, 'tenant'],
  [115, 'organization_id', 'int64', true, 'organization'],
]

/** Of `transform.secret_facts`. */
const FACT_FIELDS: readonly Field[] = [
  [23, 'secret_kind', 'text', true, 'what the secret is before it is masked: plain, digest or empty'],
  [
    24,
    'secret_meets_policy',
    'boolean',
    true,
    'whether a plain secret meets the policy of transform.secret_facts',
  ],
]

export const FACT_COLUMNS = FACT_FIELDS.map(([, ...field]) => column(...field))

const COLUMNS: Readonly<Record<Resource, readonly ColumnSpec[]>> = {
  credentials: CREDENTIAL_COLUMNS,
  reports: REPORT_FIELDS.map(([, ...field]) => column(...field)),
  feed: CREDENTIAL_COLUMNS,
}

function column(name: string, type: ColumnType, nullable: boolean, meaning: string): ColumnSpec {
  return { name, type, nullable, meaning }
}

const FIELD_IDS: ReadonlyMap<string, number> = new Map(
  [...CREDENTIAL_FIELDS, ...REPORT_FIELDS, ...FACT_FIELDS]
    .map(([id, name]): [string, number] => [name, id])
    .concat(MORE_FIELDS.map(([id, , name]) => [name, id])),
)

const FIRST_OF_ELEMENTS = 1000
// Ids of names end at 2,001,000,000: Iceberg reserves the last 200 numbers of 31 bits.
const FIRST_OF_NAMES = 1_000_000
const COUNT_OF_NAMES = 2_000_000_000

/** The id of a column. An undocumented field gets an id derived from its name. */
export function fieldId(column: string): number {
  return FIELD_IDS.get(column) ?? FIRST_OF_NAMES + (crc32(column) % COUNT_OF_NAMES)
}

/** The id of the elements of a list column. In Parquet these are a field of their own. */
export function elementFieldId(column: string): number {
  return FIRST_OF_ELEMENTS + fieldId(column)
}
