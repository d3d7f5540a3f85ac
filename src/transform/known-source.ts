import { mayHoldManyValues } from '../rows/index.ts'
import type { ExtraReader, SourceExtras } from './extra/extra-reader.ts'
import type { ReadSource } from './scan/item-walker.ts'
import { SOURCE_FIELDS, type Source, sourceSchema, unknownNames } from './schema.ts'

/** A validated source and what a row needs of it. */
export type KnownSource = {
  readonly id: string
  readonly source: Source
  /** Names of its fields that nobody knows. */
  readonly unknown: readonly string[]
  /** What additional columns take of it; null where there are none. */
  readonly extras: SourceExtras | null
  /** Entry of (`source.id`, source) in the source table of page number `page`. */
  entry: number
  page: number
}

/** Parses and validates a source that has not come before; null when it breaks the schema. */
export function sourceReader(extras: ExtraReader | null): ReadSource<KnownSource> {
  return (bytes, start, end) => {
    // An item with it is parsed as a whole.
    if (mayHoldManyValues(end - start)) return null
    const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
    const result = sourceSchema.safeParse(value)
    if (!result.success) return null
    const source = result.data
    const taken = extras === null ? null : extras.source(bytes, start, end)
    if (extras !== null && taken === null) return null
    const unknown = unknownNames(value as object, extras?.sourceFields ?? SOURCE_FIELDS, 'source.')
    return { id: source.id, source, unknown, extras: taken, entry: 0, page: -1 }
  }
}
