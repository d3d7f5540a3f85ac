import { mayHoldManyValues } from '../rows/index.ts'
import type { ExtraReader, SourceExtras } from './extra/extra-reader.ts'
import { searchedReadings } from './own-secret/own-secret.ts'
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
  /** The readings of its texts in which a row's secret is looked for; null: there are none. */
  readonly searched: string | null
  /** Entry of (`source.id`, source) in the source table of page number `page`. */
  entry: number
  page: number
}

/**
 * Parses and validates a source that has not come before; null when it breaks the schema.
 * @param isSearched whether its texts are searched for the secrets of rows
 */
export function sourceReader(extras: ExtraReader | null, isSearched: boolean): ReadSource<KnownSource> {
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
    const searched = isSearched ? searchedReadings([...textsOf(source, taken), ...unknown]) : null
    return { id: source.id, source, unknown, extras: taken, searched, entry: 0, page: -1 }
  }
}

function textsOf(source: Source, extras: SourceExtras | null): readonly string[] {
  const { id: _, ...own } = source
  const values = [...Object.values(own), ...(extras?.values ?? []).flatMap(([, value]) => value)]
  return values.filter((value) => typeof value === 'string')
}
