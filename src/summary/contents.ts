import { bytesText, counted, countText, getOrInsert } from '../core/index.ts'
import { type Manifest, type ManifestPartition, splitPath, type Verdict } from '../state/index.ts'
import { rangeText, time } from './words.ts'

/** What a summary is made of. The same input gives the same page, to the byte. */
export type SummaryInput = {
  readonly manifest: Manifest
  readonly manifestSha256: string
  readonly verdict: Verdict
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

/** What the verdict does not say in its line. */
export function reasonsOf({ leftOut, outside, waiting }: Verdict): readonly string[] {
  const [first] = waiting
  const { partitions, rows } = outside
  return [
    ...leftOut,
    ...(partitions === 0
      ? []
      : [
          `${counted(rows, 'row')} in ${counted(partitions, 'partition')} ${rows === 1 ? 'is' : 'are'} outside of what the pipeline file plans`,
        ]),
    ...(first === undefined
      ? []
      : [
          `${counted(waiting.length, 'window')} from ${time(first.from)} on ${waiting.length === 1 ? 'waits' : 'wait'} for ${waiting.length === 1 ? 'its' : 'their'} end and extract.lag`,
        ]),
  ]
}

/** What is covered, and else what is requested; null: there are no windows. */
export function periodOf({ covers }: Verdict): string | null {
  return covers === null ? null : rangeText(covers.from, covers.until)
}

export function figuresOf({
  manifest: { partitions: all, totals, runs },
  verdict: { partitions },
  rows,
}: SummaryInput): readonly (readonly [name: string, value: string])[] {
  const last = runs.at(-1)
  const left = runs.findLast(({ searches_remaining }) => searches_remaining !== null)?.searches_remaining
  const waiting = all.reduce((sum, each) => sum + each.rows, -totals.rows)
  const figure = (name: string, value: number | null | undefined) =>
    value == null ? [] : [[name, countText(value)] as const]
  return [
    ...figure(waiting > 0 ? 'rows in files' : 'rows', totals.rows),
    ...figure('rows in no file yet', waiting > 0 ? waiting : null),
    ...figure('people', rows?.people),
    ...(partitions === null
      ? []
      : figure(
          partitions.done === partitions.total
            ? 'partitions done'
            : `of ${counted(partitions.total, 'partition')} done`,
          partitions.done,
        )),
    ...figure('new in the last run', last?.rows),
    ...(last === undefined ? [] : [['last run, UTC', time(last.started_at)] as const]),
    ...figure('searches left', left),
    ...figure('quarantined', totals.quarantined || null),
    ...figure('of forgotten people, left out', totals.forgotten || null),
    ...figure(totals.shards === 1 ? 'file' : 'files', totals.shards),
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
