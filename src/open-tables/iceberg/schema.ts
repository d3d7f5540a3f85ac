import { type ColumnSpec, type ColumnType, elementFieldId, fieldId } from '../../core/index.ts'

/** A schema in Iceberg's JSON. Source: https://iceberg.apache.org/spec/#appendix-c-json-serialization */
export type IcebergSchema = {
  readonly type: 'struct'
  readonly 'schema-id': number
  readonly fields: readonly IcebergField[]
}

type IcebergField = {
  readonly id: number
  readonly name: string
  readonly required: boolean
  readonly type: unknown
  readonly doc?: string | undefined
}

const TYPES: Readonly<Record<Exclude<ColumnType, 'list'>, string>> = {
  int64: 'long',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamptz',
}

/** The fields have the ids of the files, so that nothing depends on names or order. */
function fieldOf({ name, type, nullable, meaning }: ColumnSpec): IcebergField {
  return {
    id: fieldId(name),
    name,
    required: !nullable,
    type:
      type === 'list'
        ? {
            type: 'list',
            'element-id': elementFieldId(name),
            element: 'string',
            'element-required': false,
          }
        : TYPES[type],
    ...(meaning === '' ? {} : { doc: meaning }),
  }
}

/** The schemas of a table, and the id of the one that has these columns; it is added if there is none. */
export function withSchema(
  schemas: readonly IcebergSchema[],
  columns: readonly ColumnSpec[],
): { schemas: readonly IcebergSchema[]; schema: IcebergSchema; lastColumnId: number } {
  const fields = columns.map(fieldOf)
  const same = schemas.find((schema) => JSON.stringify(schema.fields) === JSON.stringify(fields))
  const next = Math.max(-1, ...schemas.map((schema) => schema['schema-id'])) + 1
  const schema = same ?? { type: 'struct', 'schema-id': next, fields }
  const all = same === undefined ? [...schemas, schema] : schemas
  const ids = all.flatMap((schema) =>
    schema.fields.flatMap(({ id, type }) => [id, ...(typeof type === 'string' ? [] : elementIds(type))]),
  )
  return { schemas: all, schema, lastColumnId: Math.max(...ids) }
}

function elementIds(type: unknown): readonly number[] {
  return [(type as { 'element-id': number })['element-id']]
}
