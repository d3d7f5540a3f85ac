import { identityIn, locationOf, type NamedPipeline, queryLabel } from '../../core/index.ts'
import type { CheckpointState } from '../../state/index.ts'
import type { People } from './people.ts'
import type { Survey } from './survey.ts'

/**
 * What of people stays because queries name them, or may name them; with the way out. Removing rows does not change
 * queries: their values are in the pipeline file, in folders, keys and manifest, and in the column `query_value`.
 */
export function queriesOfPeople(
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
  { queries: found }: Pick<Survey, 'queries'>,
): readonly string[] {
  const { extract, transform } = pipeline
  const queries = [...extract.queries, ...(extract.unfiltered?.queries ?? [])]
  const where = locationOf(pipeline, 'extract.queries')
  const notes: string[] = []
  const isNamed = queries.some((query) => namesOneOf(people, query.type, queryLabel(query)))
  const isRetired =
    transform.identity === 'keep' && [...state.partitions.branches.keys()].some((name) => isOf(people, name))
  if (isNamed || isRetired) {
    notes.push(
      `A query names one of them (${isNamed ? where : 'one that the file no longer has'}): its value stays in folders, keys, manifest and query_value. Take it out of the file, export to another load.path with as: for such queries, and delete this data set.`,
    )
  }
  if ([...found].some((name) => name.startsWith('secret.'))) {
    notes.push(
      `Rows of them were found by a query for a secret (${where}): the secret may be theirs. If it is, take the query out of the file and its variable out of the environment.`,
    )
  }
  return notes
}

/** Whether the name of a query, as in folders, names one of them. */
function isOf(people: People, name: string): boolean {
  const [type, ...rest] = name.split('.')
  return namesOneOf(people, type!, decodeURIComponent(rest.join('.')))
}

function namesOneOf(people: People, type: string, value: string): boolean {
  const identity = identityIn(type)
  return identity !== 'none' && people.isNamedBy(value, identity === 'part')
}
