import { numberOf, type Pipeline, searchesOf } from '../../core/index.ts'
import type { CheckpointState } from '../../state/index.ts'

/** Columns that the pipeline has and some partitions were exported without, and what these would cost anew. */
export type LackingColumns = {
  readonly columns: readonly string[]
  readonly partitions: number
  readonly rows: number
  readonly requests: number
  readonly searches: number
}

export function lackingText({ partitions, columns }: LackingColumns): string {
  return `${numberOf(partitions, 'partition')} without ${columns.join(', ')}: \`plan\` says what \`run --redo\` would cost`
}

/** null: every shard has the columns of the pipeline */
export function lackingColumns(
  { transform, service }: Pick<Pipeline, 'transform' | 'service'>,
  state: Pick<CheckpointState, 'schemas' | 'shards' | 'partitions'> | null,
): LackingColumns | null {
  if (state === null) return null
  const lacking = state.schemas.map(({ columns }) =>
    transform.columns.filter((name) => !columns.includes(name)),
  )
  if (lacking.every(({ length }) => length === 0)) return null
  const columns = new Set<string>()
  const partitions = new Set<string>()
  for (const { schema = 0, rows, partitions: within } of state.shards) {
    const names = lacking[schema]!
    if (rows === 0 || names.length === 0) continue
    for (const name of names) columns.add(name)
    for (const key of within) partitions.add(key)
  }
  if (partitions.size === 0) return null
  let [rows, pages] = [0, 0]
  for (const key of partitions) {
    const folded = state.partitions.get(key)
    rows += folded?.rows ?? 0
    pages += folded?.pages ?? 0
  }
  // A page may have rows of many partitions.
  const requests = Math.max(1, pages)
  const searches = Math.max(requests, searchesOf(rows, service.rowsPerSearch))
  return {
    columns: transform.columns.filter((name) => columns.has(name)),
    partitions: partitions.size,
    ...{ rows, requests, searches },
  }
}
