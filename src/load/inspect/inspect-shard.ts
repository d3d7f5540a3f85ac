import type { SchemaTree } from 'hyparquet'
import type { CsvFormat, Format } from '../../core/index.ts'
import { type ColumnSpec, TYPE_NAMES } from '../../rows/index.ts'
import { type CsvLine, fieldText, PATTERNS, readCsv, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

type InspectOptions = {
  /** The columns that the shard should have. They give the types of the columns of a CSV file. */
  readonly columns: readonly ColumnSpec[]
  /** String columns whose values are all passed to `onText`. Columns that the shard does not have are ignored. */
  readonly watch: readonly string[]
  readonly onText: (column: string, value: string | null) => void
}

export type InspectedShard = {
  readonly rows: number
  readonly columns: readonly {
    readonly name: string
    /** As in the manifest: `STRING`, `TIMESTAMP(MICROS, UTC)` and so on. */
    readonly type: string
    readonly nullable: boolean
  }[]
}

/**
 * Reads every value back, with other code than that which wrote it: a column of a row group, or a line, at a time.
 * @throws ExportError `damaged`, never naming a value; `config` when this Node.js cannot read the compression
 */
export function inspectShard(
  reader: ShardReader,
  format: Format,
  options: InspectOptions,
): Promise<InspectedShard> {
  switch (format.kind) {
    case 'parquet':
      return inspectParquet(reader, options)
    case 'csv':
      return inspectCsv(reader, format, options)
  }
}

const MAGIC = 'PAR1'

async function inspectParquet(
  reader: ShardReader,
  { watch, onText }: InspectOptions,
): Promise<InspectedShard> {
  const start = Buffer.from(await reader.slice(0, MAGIC.length))
  if (start.toString('latin1') !== MAGIC) throw damaged('It does not start like a Parquet file')
  const { metadata, columns: trees, rowGroups } = await openParquet(reader)
  const columns = trees.map((tree) => ({
    name: tree.element.name,
    type: typeName(tree),
    nullable: tree.element.repetition_type === 'OPTIONAL',
  }))
  let rows = 0
  for (const [i, rowGroup] of rowGroups.entries()) {
    for (const [j, { name }] of columns.entries()) {
      const arrays = await rowGroup.column(name, `Column ${j + 1} of row group ${i + 1}`)
      if (!watch.includes(name)) continue
      for (const values of arrays)
        for (const value of values) onText(name, value == null ? null : String(value))
    }
    rows += rowGroup.rows
  }
  if (BigInt(rows) !== metadata.num_rows)
    throw damaged('The rows of its row groups do not add up to its number of rows')
  return { rows, columns }
}

/** The type's name in the manifest, or its name in the file if the manifest has no name for it. */
function typeName({ element, children }: SchemaTree): string {
  const { type, converted_type, logical_type } = element
  if (converted_type === 'LIST') {
    const item = children[0]?.children[0]
    return item === undefined ? 'LIST' : `LIST<${typeName(item)}>`
  }
  if (logical_type?.type === 'TIMESTAMP') {
    return `TIMESTAMP(${logical_type.unit}, ${logical_type.isAdjustedToUTC ? 'UTC' : 'local'})`
  }
  if (converted_type === 'UTF8') return TYPE_NAMES.text
  return converted_type ?? type ?? 'STRUCT'
}

async function inspectCsv(
  reader: ShardReader,
  format: CsvFormat,
  { columns: expected, watch, onText }: InspectOptions,
): Promise<InspectedShard> {
  let columns: ColumnSpec[] = []
  let rows = 0
  await readCsv(reader, format, (names) => {
    columns = names.map(
      (name) =>
        expected.find((column) => column.name === name) ?? {
          name,
          type: 'text',
          nullable: true,
          meaning: '',
        },
    )
    const checks = columns.flatMap((column, i) => {
      const watcher = watch.includes(column.name) ? onText : null
      return lineCheck(column, i, watcher, format.escapeFormulas)
    })
    return (line, number) => {
      for (const check of checks) check(line, number)
      rows++
    }
  })
  return {
    rows,
    columns: columns.map(({ name, type, nullable }) => ({ name, type: TYPE_NAMES[type], nullable })),
  }
}

type LineCheck = (line: CsvLine, number: number) => void

/** Checks for field i of every line; none for a nullable string column that is not watched. */
function lineCheck(
  { name, type, nullable }: ColumnSpec,
  i: number,
  onText: InspectOptions['onText'] | null,
  escapeFormulas: boolean,
): LineCheck[] {
  if (type === 'text' && nullable && onText === null) return []
  const pattern = type === 'text' ? null : PATTERNS[type]
  return [
    (line, number) => {
      const text = fieldText(line, i)
      if (text === null) {
        if (!nullable) throw damaged(`Column ${name} is null in line ${number}`)
        onText?.(name, null)
        return
      }
      if (pattern !== null && !pattern.test(text)) {
        throw damaged(`Column ${name} holds no ${TYPE_NAMES[type]} in line ${number}`)
      }
      onText?.(name, escapeFormulas ? unescaped(text) : text)
    },
  ]
}
