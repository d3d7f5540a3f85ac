import {
  ExportError,
  hidesIdentity,
  IDENTITY_POLICIES,
  locationOf,
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  nullIf,
  type Pipeline,
  type Query,
  queryLabel,
  visibleLabel,
} from '../core/index.ts'
import { type CheckpointState, isKnown, type JournalEntry } from '../state/index.ts'
import { maskedQueryValue } from '../transform/index.ts'

/** Characters of a digest in a name: enough to distinguish queries, and short enough for the name of a folder. */
const DIGEST_DIGITS = 16

/**
 * A query that hides an identity, and has no `as`, is named by the beginning of the digest in its rows' `query_value`.
 * @throws ExportError `config` when that needs a mask key and there is none, or two queries would share a name
 */
export function namePipeline(pipeline: Pipeline, maskKey: Uint8Array | null): NamedPipeline {
  const { extract } = pipeline
  const named = (queries: readonly Query[]): readonly NamedQuery[] => {
    const all = queries.map((query) =>
      isNamed(query) ? query : nameQuery(query, labelOf(query, pipeline, maskKey)),
    )
    requireDistinct(all, pipeline)
    return all
  }
  const unfiltered =
    extract.unfiltered == null ? null : { ...extract.unfiltered, queries: named(extract.unfiltered.queries) }
  return { ...pipeline, extract: { ...extract, queries: named(extract.queries), unfiltered } }
}

function isNamed(query: Query): query is NamedQuery {
  return 'name' in query
}

/** null: the names of queries need a key. */
export function withNames(pipeline: Pipeline, maskKey: Uint8Array | null = null): NamedPipeline | null {
  try {
    return namePipeline(pipeline, maskKey)
  } catch (error) {
    return nullIf('config')(error)
  }
}

function labelOf(query: Query, pipeline: Pipeline, maskKey: Uint8Array | null): string {
  const { transform } = pipeline
  const label = visibleLabel(query, transform.identity)
  if (label !== null) return label
  if (IDENTITY_POLICIES[transform.identity].isKeyed) {
    return maskedQueryValue(query, null, { ...transform, maskKey }).slice(0, DIGEST_DIGITS)
  }
  throw new ExportError({
    kind: 'config',
    what: `transform.identity hides the value of a query of type ${query.type}, and the query has no other name`,
    where: locationOf(pipeline, 'extract.queries'),
    next: 'Give the query a name with as.',
  })
}

/** A file system may fold the case of names, and their accents: on every one, two such folders would be the same. */
function requireDistinct(queries: readonly NamedQuery[], pipeline: Pipeline): void {
  const names = new Map<string, string>()
  for (const { name } of queries) {
    const other = names.get(foldedName(name))
    if (other !== undefined) throw sameNames(other, name, pipeline)
    names.set(foldedName(name), name)
  }
}

function foldedName(name: string): string {
  return decodeURIComponent(name).normalize('NFC').toLowerCase()
}

function sameNames(one: string, other: string, pipeline: Pipeline): ExportError {
  return new ExportError({
    kind: 'config',
    what:
      one === other
        ? `Two queries have the name ${one}`
        : `Two queries have names that some file systems take for the same: ${one} and ${other}`,
    where: locationOf(pipeline, 'extract.queries'),
    next: 'Give one of them another name with as.',
  })
}

/** @throws ExportError `config` for a name that was another query's, whose rows would count; unseen under `drop` */
export function requireSameNames(
  pipeline: NamedPipeline,
  found: CheckpointState,
  maskKey: Uint8Array | null,
): void {
  const exported = new Map([...found.partitions.branches.keys()].map((name) => [foldedName(name), name]))
  for (const query of pipeline.extract.queries) {
    const other = exported.get(foldedName(query.name))
    if (other !== undefined && other !== query.name && isKnown(found, other))
      throw sameNames(other, query.name, pipeline)
    const [given, known] = [givenTo(query), found.queries.get(query.name)]
    if (!given && known === undefined) continue
    const value = valueFor(query, pipeline, maskKey)
    if (value === null || value === known) continue
    // A name that the user did not give is made of the query itself.
    const isAnothers =
      known !== undefined ||
      (isKnown(found, query.name) && nameQuery(query, queryLabel(query)).name !== query.name)
    if (isAnothers)
      throw new ExportError({
        kind: 'config',
        what: `The data set has ${query.name} as the name of another query`,
        // Domains without `as` may be in any of three keys.
        where: locationOf(pipeline, givenTo(query) ? 'extract.queries' : 'extract'),
        next: 'Give the query another name with as, write to another load.path, or start over with --fresh.',
      })
  }
}

export function newNames(
  pipeline: NamedPipeline,
  found: CheckpointState,
  maskKey: Uint8Array | null,
): readonly JournalEntry[] {
  return pipeline.extract.queries.flatMap((query): JournalEntry[] => {
    if (!givenTo(query) || found.queries.has(query.name)) return []
    const value = valueFor(query, pipeline, maskKey)
    return value === null ? [] : [{ kind: 'query', name: query.name, value }]
  })
}

function givenTo(query: NamedQuery): boolean {
  return 'as' in query && query.as !== undefined
}

/** What distinguishes a query from others of its kind and may be stored: its `query_value`; null: nothing may. */
function valueFor(
  query: NamedQuery,
  { transform }: NamedPipeline,
  maskKey: Uint8Array | null,
): string | null {
  if (!hidesIdentity(query, transform.identity)) return queryLabel(query)
  const { isKeyed } = IDENTITY_POLICIES[transform.identity]
  return isKeyed ? maskedQueryValue(query, null, { ...transform, maskKey }) : null
}
