import {
  type ExtraField,
  kindOfRows,
  type Resource,
  rulesOf,
  type TransformSettings,
} from '../../core/index.ts'
import {
  allColumns,
  droppedColumns,
  FACT_COLUMNS,
  fieldId,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
} from '../../rows/index.ts'
import { didYouMean } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'

export function resolveTransform(file: PipelineFile, problems: Problems): TransformSettings {
  const { resource, include = [] } = file.extract
  const { secret, identity, columns, secret_facts: facts, ...transform } = file.transform
  const dropped = rulesOf(resource).holdsPeople ? droppedColumns(secret, identity) : []
  const extraColumns = resolveExtraColumns(file, problems)
  const extra = [...extraColumns.map(({ name }) => name), ...(facts === undefined ? [] : FACT_NAMES)]
  const own = allColumns(resource, include).flatMap(({ name }) => (dropped.includes(name) ? [] : [name]))
  const available = [...own, ...extra]
  for (const [i, name] of (columns ?? []).entries()) {
    if (available.includes(name)) continue
    const path = ['transform', 'columns', i]
    problems.add(path, whyNot(name, problems.found(path), available, dropped, resource))
  }
  return {
    secret,
    identity,
    maskKeyEnv: transform.mask_key_env,
    columns: columns === undefined ? available : [...own.filter((name) => columns.includes(name)), ...extra],
    extraColumns,
    lacking: [],
    secretFacts:
      facts === undefined
        ? null
        : { policy: { minLength: facts.policy.min_length, classes: facts.policy.classes } },
    onInvalid: transform.on_invalid,
    maxQuarantined: transform.max_quarantined,
  }
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
  const why = [
    [OPTIONAL_FIELDS.has(name), 'only when extract.include names it'],
    [EXTRA_NAMES.includes(name), 'only when transform.extra_columns names it'],
    [FACT_NAMES.includes(name), 'only with transform.secret_facts'],
  ] as const
  const [, when] = (kindOfRows(resource) === 'credentials' && why.find(([isSo]) => isSo)) || []
  if (when !== undefined) return `the column \`${name}\` is there ${when}`
  return `expected one of ${available.join(', ')}, found ${found}${didYouMean(name, available)}`
}

type GivenColumn = NonNullable<PipelineFile['transform']['extra_columns']>[number]

const FACT_NAMES = FACT_COLUMNS.map(({ name }) => name)
const EXTRA_NAMES = KNOWN_EXTRAS.map(({ name }) => name)

/** Names of the folders of a partition: readers make columns of them. */
const FOLDERS = ['query', 'import_window']

/** Fields that are columns, or can become one by a known name, and that column. */
export function takenFields(resource: Resource): ReadonlyMap<string, string> {
  const names = columnsOf(resource).filter((name) => !name.startsWith('query_'))
  return new Map([
    ['source.id', 'source_id'],
    ...names.map(
      (name) => [name === 'source_id' ? name : name.replace(/^source_/, 'source.'), name] as const,
    ),
    ...KNOWN_EXTRAS.map(({ name, path }) => [path.join('.'), name] as const),
  ])
}

function columnsOf(resource: Resource): readonly string[] {
  return allColumns(resource, [...OPTIONAL_FIELDS]).map(({ name }) => name)
}

function resolveExtraColumns(
  { extract: { resource }, transform }: PipelineFile,
  problems: Problems,
): readonly ExtraField[] {
  const fields: ExtraField[] = []
  for (const [i, column] of (transform.extra_columns ?? []).entries()) {
    const fault = faultOf(column, fields, resource)
    if (fault === null) fields.push(fieldOf(column))
    else problems.add(['transform', 'extra_columns', i, ...fault.at], fault.text)
  }
  return fields
}

type Fault = { readonly at: readonly string[]; readonly text: string }

function faultOf(column: GivenColumn, before: readonly ExtraField[], resource: Resource): Fault | null {
  const { name, path } = fieldOf(column)
  const isKnown = typeof column === 'string'
  if (before.some((other) => other.name === name))
    return { at: isKnown ? [] : ['name'], text: `the column \`${name}\` is there twice` }
  if (isKnown) return null
  const names = [...columnsOf(resource), ...FACT_NAMES, ...EXTRA_NAMES, ...FOLDERS]
  if (names.includes(name) || name.startsWith('spillway_'))
    return {
      at: ['name'],
      text: `\`${name}\` is taken: it names another column or a folder, or begins with \`spillway_\``,
    }
  const alike = before.find((other) => fieldId(other.name) === fieldId(name))?.name
  if (alike !== undefined) {
    const text = `\`${name}\` would have the field_id of \`${alike}\` in Parquet; choose another name`
    return { at: ['name'], text }
  }
  const [first = '', second] = path
  if (first === 'source' && second === undefined)
    return { at: ['path'], text: 'the fields of `source` are columns of their own; name one of them' }
  const field = first === 'source' ? `source.${second}` : first
  const taken = takenFields(resource).get(field)
  return taken === undefined
    ? null
    : { at: ['path'], text: `the field \`${field}\` is the column \`${taken}\`` }
}

function fieldOf(column: GivenColumn): ExtraField {
  if (typeof column === 'string') return KNOWN_EXTRAS.find(({ name }) => name === column)!
  return { ...column, path: column.path.split('.'), meaning: null }
}
