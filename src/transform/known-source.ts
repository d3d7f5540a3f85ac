import { mayHoldManyValues } from '../rows/index.ts'
import { SOURCE_FIELDS, type Source, sourceSchema, unknownNames } from './schema.ts'

/** A validated source and what a row needs of it. */
export type KnownSource = {
  readonly id: string
  readonly source: Source
  /** Names of its fields that nobody knows. */
  readonly unknown: readonly string[]
  /** Entry of (`source.id`, source) in the source table of page number `page`. */
  entry: number
  page: number
}

/** Parses and validates a source that has not come before; null when it breaks the schema. */
export function readSource(bytes: Buffer, start: number, end: number): KnownSource | null {
  // An item with it is parsed as a whole.
  if (mayHoldManyValues(end - start)) return null
  const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
  const { data: source } = sourceSchema.safeParse(value)
  if (source === undefined) return null
  const unknown = unknownNames(value as object, SOURCE_FIELDS, 'source.')
  return { id: source.id, source, unknown, entry: 0, page: -1 }
}
