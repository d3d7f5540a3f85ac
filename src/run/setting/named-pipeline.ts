import {
  ExportError,
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  openLabel,
  type Pipeline,
  type Query,
} from '../../core/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'

/** So much of a digest tells any number of queries apart, and fits into a folder's name with room to spare. */
const DIGEST_DIGITS = 16

/**
 * Gives every query its name. One that requests an identity which the policy hides, and that the user gave no name,
 * goes by the beginning of the digest that its rows have in `query_value`.
 * @throws ExportError 'config' when that takes a mask key and there is none, or two queries would share a name
 */
export function namePipeline(pipeline: Pipeline, maskKey: Uint8Array | null): NamedPipeline {
  const { extract } = pipeline
  const named = (queries: readonly Query[]): readonly NamedQuery[] => {
    const all = queries.map((query) => nameQuery(query, labelOf(query, pipeline, maskKey)))
    requireDistinct(all, pipeline.file)
    return all
  }
  const whole = extract.whole == null ? null : { ...extract.whole, queries: named(extract.whole.queries) }
  return { ...pipeline, extract: { ...extract, queries: named(extract.queries), whole } }
}

function labelOf(query: Query, { transform, file }: Pipeline, maskKey: Uint8Array | null): string {
  const label = openLabel(query, transform.identity)
  if (label !== null) return label
  if (transform.identity === 'hmac') {
    return maskedQueryValue(query, null, { ...transform, maskKey }).slice(0, DIGEST_DIGITS)
  }
  throw new ExportError(
    'config',
    `transform.identity hides what a query of type ${query.type} asks for, and the query has no other name`,
    file,
    'Give the query a name with as.',
  )
}

function requireDistinct(queries: readonly NamedQuery[], file: string): void {
  const names = new Set<string>()
  for (const { name } of queries) {
    if (names.has(name)) {
      throw new ExportError(
        'config',
        `Two queries have the name ${name}`,
        file,
        'Give one of them another name with as.',
      )
    }
    names.add(name)
  }
}
