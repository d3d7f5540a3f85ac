import { allColumns, type ExtraField, fieldId, KNOWN_EXTRAS, OPTIONAL_FIELDS } from '../../core/index.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'

type GivenColumn = NonNullable<PipelineFile['transform']['extra_columns']>[number]

const COLUMNS = allColumns('credentials', [...OPTIONAL_FIELDS]).map(({ name }) => name)

/** Names of the folders of a partition: readers make columns of them. */
const FOLDERS: ReadonlySet<string> = new Set(['query', 'import_window'])

/** Every field that is a column already, or can be one by its name, and that column. */
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
export function resolveExtraColumns(
  { extract, transform }: PipelineFile,
  problems: Problems,
): readonly ExtraField[] {
  const key = ['transform', 'extra_columns']
  const given = transform.extra_columns ?? []
  if (extract.resource === 'reports' && transform.extra_columns !== undefined) {
    if (!problems.touched(['extract', 'resource']))
      problems.add(key, 'does not go with resource: reports', 'key')
    return []
  }
  const fields: ExtraField[] = []
  for (const [i, column] of given.entries()) {
    const fault = faultOf(column, fields)
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
  if (COLUMNS.includes(name) || KNOWN_EXTRAS.some((known) => known.name === name)) {
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

/** Which column has the field that a path leads to, or through. */
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
