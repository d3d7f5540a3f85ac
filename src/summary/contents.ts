import { bytesText, counted, countText, getOrInsert } from '../core/index.ts'
import { type Manifest, type ManifestPartition, type RunBy, splitPath, type Verdict } from '../state/index.ts'

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

/** The first two or three digits, truncated: `940`, `1.2k`, `56k`, `340M`. */
export function short(value: number): string {
  const unit = Math.max(0, Math.min(UNITS.length - 1, Math.floor((String(value).length - 1) / 3)))
  const shown = value / 1000 ** unit
  return `${unit > 0 && shown < 10 ? (Math.floor(shown * 10) / 10).toFixed(1) : Math.floor(shown)}${UNITS[unit]}`
}

const UNITS = ['', 'k', 'M', 'G']

/** `2024-07-22 19:25`, a date alone for midnights. */
export function time(text: string): string {
  const [, date, hour = '00', minute = '00'] = /^([\d-]{10})(?:T(\d\d):?(\d\d))?/.exec(text) ?? ['', text]
  return hour === '00' && minute === '00' ? date! : `${date} ${hour}:${minute}`
}

/** A range as people read it: `2024-01-01 to 2024-12-31`, its last day included. */
export function rangeText(from: string, until: string): string {
  const [first, last] = [time(from), until === 'now' ? 'now' : lastOf(until)]
  return first === last ? first : `${first} to ${last}`
}

/** The last day before a midnight, or the instant itself. */
function lastOf(until: string): string {
  const date = time(until)
  return date.length > 10 ? date : new Date(Date.parse(date) - 1).toISOString().slice(0, 10)
}

/** How rows are masked. A manifest of another version may name a policy that this one does not know. */
export function maskingWords(
  policies: Readonly<Record<string, { readonly words: string }>>,
  name: string,
): string {
  return policies[name]?.words ?? name
}

/** `organization 7, tenant 12, host etl-2` */
export function byText({ organization, tenant, host }: RunBy): string {
  return [
    ...(organization === null ? [] : [`organization ${organization}`]),
    ...(tenant === null ? [] : [`tenant ${tenant}`]),
    `host ${host}`,
  ].join(', ')
}
