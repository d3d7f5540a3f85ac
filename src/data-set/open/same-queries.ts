import {
  ExportError,
  hidesIdentity,
  IDENTITY_POLICIES,
  locationOf,
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  queryLabel,
} from '../../core/index.ts'
import { type CheckpointState, isKnown, type JournalEntry } from '../../state/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import { foldedName, sameNames } from '../queries.ts'

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
