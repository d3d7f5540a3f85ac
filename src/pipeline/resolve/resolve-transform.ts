import {
  type ExtraField,
  kindOfRows,
  type Resource,
  rulesOf,
  type SecretFacts,
  type TransformSettings,
} from '../../core/index.ts'
import {
  allColumns,
  droppedColumns,
  FACT_COLUMNS,
  fieldId,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
  ownFields,
} from '../../rows/index.ts'
import { didYouMean } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'

/** The masking policies, and the columns in output order without those that the policies drop. */
export function resolveTransform(file: PipelineFile, problems: Problems): TransformSettings {
  const { extract, transform } = file
  const dropped = rulesOf(extract.resource).holdsPeople
    ? droppedColumns(transform.secret, transform.identity)
    : []
  const extraColumns = resolveExtraColumns(file, problems)
  const secretFacts = resolveFacts(file)
  const facts = secretFacts === null ? [] : FACT_NAMES
  const extra = [...extraColumns.map(({ name }) => name), ...facts]
  const own = allColumns(extract.resource, extract.include ?? [])
    .map((column) => column.name)
    .filter((name) => !dropped.includes(name))
  const available = [...own, ...extra]
  const { columns } = transform
  if (columns !== undefined) {
    if (columns.length === 0)
      problems.add(['transform', 'columns'], 'expected at least one column, found an empty list')
    for (const [i, name] of columns.entries()) {
      if (available.includes(name)) continue
      const path = ['transform', 'columns', i]
      problems.add(path, whyNot(name, problems.found(path), available, dropped, extract.resource))
    }
  }
  return {
    secret: transform.secret,
    identity: transform.identity,
    maskKeyEnv: transform.mask_key_env,
    columns: columns === undefined ? available : [...own.filter((name) => columns.includes(name)), ...extra],
    extraColumns,
    secretFacts,
    onInvalid: transform.on_invalid,
    maxQuarantined: transform.max_quarantined,
  }
}

function resolveFacts({ extract, transform: { secret_facts } }: PipelineFile): SecretFacts | null {
  if (secret_facts === undefined || kindOfRows(extract.resource) !== 'credentials') return null
  const { min_length, classes } = secret_facts.policy
  return { policy: { minLength: min_length, classes } }
}

function whyNot(
  name: string,
  found: string,
  available: readonly string[],
  dropped: readonly string[],
  resource: Resource,
): string {
  if (dropped.includes(name)) {
    const policy = name === 'hash' ? 'transform.secret' : 'transform.identity'
    return `the column \`${name}\` is taken away by ${policy}: drop`
  }
  const areCredentials = kindOfRows(resource) === 'credentials'
  if (areCredentials && OPTIONAL_FIELDS.has(name)) {
    return `the column \`${name}\` is there only when extract.include names it`
  }
  if (areCredentials && KNOWN_EXTRAS.some((known) => known.name === name)) {
    return `the column \`${name}\` is there only when transform.extra_columns names it`
  }
  if (areCredentials && FACT_NAMES.includes(name)) {
    return `the column \`${name}\` is there only with transform.secret_facts`
  }
  return `expected one of ${available.join(', ')}, found ${found}${didYouMean(name, available)}`
}

type GivenColumn = NonNullable<PipelineFile['transform']['extra_columns']>[number]

const COLUMNS = allColumns('credentials', [...OPTIONAL_FIELDS]).map(({ name }) => name)

const FACT_NAMES = FACT_COLUMNS.map(({ name }) => name)

/** Names of the folders of a partition: readers make columns of them. */
const FOLDERS: ReadonlySet<string> = new Set(['query', 'import_window'])

/** Fields that are columns, or can become one by a known name, and that column. */
export const TAKEN_FIELDS: ReadonlyMap<string, string> = new Map([
  ...COLUMNS.filter((name) => !name.startsWith('query_')).flatMap((name): [string, string][] => {
    if (name === 'source_id')
      return [
        [name, name],
        ['source.id', name],
      ]
    return [[name.replace(/^source_/, 'source.'), name]]
  }),
  ...KNOWN_EXTRAS.map(({ name, path }): [string, string] => [path.join('.'), name]),
])

/** `transform.extra_columns`; what is wrong with one is reported at its line. */
function resolveExtraColumns(
  { extract, transform }: PipelineFile,
  problems: Problems,
): readonly ExtraField[] {
  const key = ['transform', 'extra_columns']
  const given = kindOfRows(extract.resource) === 'credentials' ? (transform.extra_columns ?? []) : []
  const fields: ExtraField[] = []
  for (const [i, column] of given.entries()) {
    const fault = faultOf(column, fields) ?? ownFieldFault(column, extract.resource)
    if (fault === null) fields.push(fieldOf(column))
    else problems.add([...key, i, ...fault.at], fault.text)
  }
  return fields
}

type Fault = { readonly at: readonly string[]; readonly text: string }

function faultOf(column: GivenColumn, before: readonly ExtraField[]): Fault | null {
  const { name, path } = fieldOf(column)
  const isKnown = typeof column === 'string'
  const at = isKnown ? [] : ['name']
  if (before.some((other) => other.name === name))
    return { at, text: `the column \`${name}\` is there twice` }
  if (isKnown) return null
  if (
    COLUMNS.includes(name) ||
    FACT_NAMES.includes(name) ||
    KNOWN_EXTRAS.some((known) => known.name === name)
  ) {
    return { at, text: `\`${name}\` is the name of another column` }
  }
  if (name.startsWith('spillway_'))
    return { at, text: "names that begin with `spillway_` are Spillway's own" }
  if (FOLDERS.has(name)) return { at, text: `\`${name}\` is the name of a folder of partitions` }
  const alike = before.find((other) => fieldId(other.name) === fieldId(name))
  if (alike !== undefined) {
    return {
      at,
      text: `\`${name}\` would have the field_id of \`${alike.name}\` in Parquet; choose another name`,
    }
  }
  const taken = takenField(path)
  return taken === null ? null : { at: ['path'], text: taken }
}

/** A field that has a column of its own, though not with every resource. */
function ownFieldFault(column: GivenColumn, resource: Resource): Fault | null {
  const { name, path } = fieldOf(column)
  const own = ownFields(resource, []).map((field) => field.name)
  if (own.includes(name)) return { at: ['name'], text: `\`${name}\` is the name of another column` }
  if (!own.includes(path[0]!)) return null
  return { at: ['path'], text: `the field \`${path[0]}\` is the column \`${path[0]}\`` }
}

/** The column of the field that a path leads to, or through. */
function takenField(path: readonly string[]): string | null {
  const [first = '', second] = path
  if (first === 'source' && second === undefined)
    return 'the fields of `source` are columns of their own; name one of them'
  const field = first === 'source' ? `source.${second}` : first
  const column = TAKEN_FIELDS.get(field)
  return column === undefined ? null : `the field \`${field}\` is the column \`${column}\``
}

function fieldOf(column: GivenColumn): ExtraField {
  const known = KNOWN_EXTRAS.find(({ name }) => name === column)
  if (known !== undefined) return known
  const { name, path, type } = column as Exclude<GivenColumn, string>
  return { name, path: path.split('.'), type, meaning: null }
}
