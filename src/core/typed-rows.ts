import { ExportError } from './errors.ts'
import type { Int64 } from './int64.ts'
import {
  type BatchColumn,
  type BooleanColumn,
  type IntegerColumn,
  type ListColumn,
  type RowBatch,
  type RowsOptions,
  rowsOf,
  type TextColumn,
  type TimeOf,
  type TimesAs,
} from './row-batch.ts'

/**
 * What the columns of credentials hold, by their names; `docs/file-formats.md` says what each means. Which of them there
 * are is for the pipeline to say. An id is a bigint where a double is not exact.
 */
export type Credential<Time = Int64> = {
  id: number | bigint
  domain: string | null
  identity_name: string
  hash: string | null
  hash_type: string | null
  imported_at: Time
  source_id: string
  source_name: string | null
  source_description_en: string | null
  source_description_fr: string | null
  source_is_alert_enabled: boolean | null
  source_breached_at: Time | null
  source_leaked_at: Time | null
  query_type: string
  query_value: string
} & CredentialExtras

/** There only where `extract.include` or `transform.extra_columns` names them. */
type CredentialExtras = {
  known_password_id: string | null
  auth_domains: readonly (string | null)[] | null
  urls: readonly (string | null)[] | null
  event_uid: string | null
  credential_hash: string | null
  source_url: string | null
  source_pii_tags: readonly (string | null)[] | null
}

export type CredentialColumn = keyof Credential
/** Columns that a pipeline has unless it leaves them out. */
export type StandardColumn = Exclude<CredentialColumn, keyof CredentialExtras>

const STANDARD_COLUMNS: readonly StandardColumn[] = [
  'id',
  'domain',
  'identity_name',
  'hash',
  'hash_type',
  'imported_at',
  'source_id',
  'source_name',
  'source_description_en',
  'source_description_fr',
  'source_is_alert_enabled',
  'source_breached_at',
  'source_leaked_at',
  'query_type',
  'query_value',
]

/**
 * The rows of a batch as credentials: the columns named, or those that every credential has.
 * @throws ExportError 'config' when the batch lacks one of them
 */
export function* credentialsOf<Name extends CredentialColumn = StandardColumn, As extends TimesAs = 'micros'>(
  batch: RowBatch,
  options: RowsOptions<As> & { readonly columns?: readonly Name[] } = {},
): Generator<Pick<Credential<TimeOf<As>>, Name>> {
  const { columns: names = STANDARD_COLUMNS, ...rest } = options
  const columns = names.map((name) => column(batch, name) ?? lacking(name))
  yield* rowsOf({ rows: batch.rows, columns }, rest) as Generator<Pick<Credential<TimeOf<As>>, Name>>
}

function lacking(name: string): never {
  throw new ExportError(
    'config',
    `The rows have no column ${name}`,
    '',
    'Name in `columns` what is to be read, all of it columns that the pipeline exports.',
  )
}

type ColumnOf<Value> = Value extends Date
  ? IntegerColumn
  : Value extends number | bigint
    ? IntegerColumn
    : Value extends boolean
      ? BooleanColumn
      : Value extends string
        ? TextColumn
        : ListColumn

/** A column by its name, of a credential with the type that it has there. */
export type ColumnNamed<Name extends string> = Name extends CredentialColumn
  ? { readonly name: Name } & ColumnOf<NonNullable<Credential[Name]>>
  : BatchColumn

/** null when the batch has none of that name. */
export function column<const Name extends CredentialColumn | (string & {})>(
  { columns }: RowBatch,
  name: Name,
): ColumnNamed<Name> | null {
  return (columns.find((candidate) => candidate.name === name) ?? null) as ColumnNamed<Name> | null
}
