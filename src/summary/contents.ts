import { bytesText, counted, countText, getOrInsert } from '../core/index.ts'
import {
  type Manifest,
  type ManifestPartition,
  NO_PARTITIONS,
  type PlanStates,
  splitPath,
} from '../state/index.ts'
import { rangeText } from './words.ts'

/** What a summary is made of. The same input gives the same page, to the byte. */
export type SummaryInput = {
  readonly manifest: Manifest
  readonly manifestSha256: string
  /** Whether the data set has `_SUCCESS`. */
  readonly complete: boolean
  /** What it lacks by intent, a clause each. */
  readonly leftOut: readonly string[]
  readonly version: string
  /** What only the rows tell; null: nobody has read them. */
  readonly rows: RowFacts | null
}

/** What only the rows of a data set tell. A column that is not exported gives null or no entries. */
export type RowFacts = {
  /** Different identities, masked ones too. */
  readonly people: number | null
  /** The largest, and the rows of all others. */
  readonly sources: Groups
  readonly hash_types: Groups
  /** By what `transform.secret_facts` tells. */
  readonly secrets: Groups
  /** By month of `imported_at`, `2024-01`, oldest first. */
  readonly months: readonly {
    readonly month: string
    readonly rows: number
    readonly people: number | null
  }[]
}

export type Groups = {
  readonly groups: readonly { readonly name: string; readonly rows: number }[]
  /** How many more there are, and the rows of these. */
  readonly more: number
  readonly others: number
}

/** Partitions of the queries that were last requested, by state, and all but the pruned ones. */
export function countsOf({ partitions, scope }: Manifest): PlanStates {
  const queries = new Set(scope.queries)
  const counts = { ...NO_PARTITIONS, total: 0 }
  for (const { key, state } of partitions) {
    if (!queries.has(splitPath(key)[0])) continue
    counts[state]++
    if (state !== 'pruned') counts.total++
  }
  return counts
}

/** Whether everything is exported, in one line: `The export is` may precede it. */
export function verdictOf({ manifest, complete }: SummaryInput): string {
  const { total, done, failed } = countsOf(manifest)
  if (complete)
    return done === 1 ? 'complete: its one partition' : `complete: all ${countText(done)} partitions`
  const of = `of ${counted(total, 'partition')}`
  if (failed > 0) return `INCOMPLETE: ${countText(failed)} ${of} failed`
  return done < total
    ? `INCOMPLETE: ${countText(total - done)} ${of} not done`
    : 'INCOMPLETE: it has no _SUCCESS'
}

export function reasonsOf({ manifest, complete, leftOut }: SummaryInput): readonly string[] {
  const { failed, partial, pending } = countsOf(manifest)
  const states = [
    [partial, 'not finished'],
    [failed > 0 || partial > 0 ? pending : 0, 'not begun'],
  ] as const
  return [
    ...(complete ? [] : states).flatMap(([partitions, what]) =>
      partitions > 0 ? [`${counted(partitions, 'partition')} ${what}`] : [],
    ),
    ...leftOut,
  ]
}

export function figuresOf(input: SummaryInput): readonly (readonly [name: string, value: string])[] {
  const { manifest, rows } = input
  const { totals, runs } = manifest
  const { total, done } = countsOf(manifest)
  const last = runs.at(-1)
  const left = runs.findLast(({ searches_remaining }) => searches_remaining !== null)?.searches_remaining
  return [
    ['rows', countText(totals.rows)],
    ...(rows?.people == null ? [] : [['people', countText(rows.people)] as const]),
    [done === total ? 'partitions done' : `of ${counted(total, 'partition')} done`, countText(done)],
    ...(last === undefined
      ? []
      : [
          ['new in the last run', countText(last.rows)] as const,
          ['last run', last.started_at.slice(0, 10)] as const,
        ]),
    ...(left == null ? [] : [['searches left', countText(left)] as const]),
    ...(totals.quarantined === 0 ? [] : [['quarantined', countText(totals.quarantined)] as const]),
    ...(totals.forgotten === 0
      ? []
      : [['of forgotten people, left out', countText(totals.forgotten)] as const]),
    [totals.shards === 1 ? 'file' : 'files', countText(totals.shards)],
    ['size', bytesText(totals.bytes)],
  ]
}

type FailureGroup = {
  readonly cause: string
  readonly next: string
  readonly partitions: readonly ManifestPartition[]
}

export function failuresOf({ partitions }: Manifest): readonly FailureGroup[] {
  const groups = new Map<string, { cause: string; next: string; partitions: ManifestPartition[] }>()
  for (const partition of partitions) {
    const { error } = partition
    if (error === undefined) continue
    getOrInsert(groups, error.cause, () => ({ ...error, partitions: [] })).partitions.push(partition)
  }
  return [...groups.values()].sort(
    (a, b) => b.partitions.length - a.partitions.length || (a.cause < b.cause ? -1 : 1),
  )
}

export function whoFailed({ partitions }: FailureGroup): string {
  const [query, window] = splitPath(partitions[0]!.key)
  const [from = '', until = ''] = window.split('..')
  const first = until === '' ? query : `${query}, ${rangeText(from, until)}`
  return partitions.length === 1 ? first : `${counted(partitions.length, 'partition')}, the first: ${first}`
}

export function quarantineReasons({ runs }: Manifest): readonly { name: string; rows: number }[] {
  const sums = new Map<string, number>()
  for (const { reasons } of runs) {
    for (const [reason, items] of Object.entries(reasons)) {
      const [field = ''] = reason.split(': ', 1)
      const name = field === '' ? 'the item itself' : field
      sums.set(name, (sums.get(name) ?? 0) + items)
    }
  }
  return [...sums]
    .map(([name, rows]) => ({ name, rows }))
    .sort((a, b) => b.rows - a.rows || (a.name < b.name ? -1 : 1))
}

/** Orders names as people do: `unit2` before `unit10`. */
export const naturally = new Intl.Collator('en', { numeric: true }).compare
