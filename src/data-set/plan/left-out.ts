import { numberOf, type Pipeline, type QuarantineLimit, searchesOf, unlessSecret } from '../../core/index.ts'
import type { CheckpointState, FoldedRun } from '../../state/index.ts'

/** What a data set lacks by intent, however complete it is. */
export type LeftOut = {
  readonly quarantined: number
  readonly quarantined_partitions: number
  /** Those of them that have more than `transform.max_quarantined` permits now. */
  readonly beyond_limit: number
  readonly max_quarantined: string
  /** Why, as far as runs recorded it: fields and rules, no values. */
  readonly reasons: readonly string[]
  /** Partitions that `prune` removed, and the time before which the last of them ended. */
  readonly pruned: { readonly partitions: number; readonly before: string } | null
  readonly forgotten: number
}

const MAX_REASONS = 3

export function leftOutClauses(leftOut: LeftOut): readonly string[] {
  const { quarantined, quarantined_partitions, beyond_limit, max_quarantined, reasons } = leftOut
  const { pruned, forgotten } = leftOut
  const clauses: string[] = []
  if (quarantined > 0) {
    const first = reasons.slice(0, MAX_REASONS).join('; ')
    const why = first === '' ? '' : `: ${first}${reasons.length > MAX_REASONS ? '; …' : ''}`
    const limit =
      beyond_limit === 0
        ? ''
        : `; ${numberOf(beyond_limit, 'partition')} beyond max_quarantined: ${max_quarantined}`
    const where = `${numberOf(quarantined_partitions, 'partition')}, see _quarantine`
    clauses.push(`${wereLeftOut(quarantined)} (quarantine, in ${where}${why}${limit})`)
  }
  if (pruned !== null) {
    const { partitions, before } = pruned
    const were = partitions === 1 ? 'was' : 'were'
    clauses.push(
      `${numberOf(partitions, 'partition')} that ended by ${before.slice(0, 10)} ${were} removed (prune)`,
    )
  }
  if (forgotten > 0) clauses.push(`${wereLeftOut(forgotten, ' of forgotten people')} (forget)`)
  return clauses
}

function wereLeftOut(items: number, of = ''): string {
  return `${numberOf(items, 'item')}${of} ${items === 1 ? 'was' : 'were'} left out`
}

/** `, but …`, or empty. */
export function leftOutText(clauses: readonly string[]): string {
  return clauses.length === 0 ? '' : `, but ${clauses.join(', and ')}`
}

export function leftOutOf(
  { maxQuarantined }: Pick<Pipeline['transform'], 'maxQuarantined'>,
  { prunes, runs, partitions }: Pick<CheckpointState, 'prunes' | 'runs' | 'partitions'>,
): LeftOut {
  const limit = allowedOf(maxQuarantined)
  const counts = { quarantined: 0, quarantined_partitions: 0, beyond_limit: 0, forgotten: 0 }
  let pruned = 0
  for (const windows of partitions.branches.values()) {
    for (const { state, rows, quarantined, forgotten } of windows.values()) {
      if (state === 'pruned') pruned++
      counts.forgotten += forgotten
      if (quarantined === 0) continue
      counts.quarantined += quarantined
      counts.quarantined_partitions++
      if (limit.isExceeded(quarantined, rows + quarantined)) counts.beyond_limit++
    }
  }
  const last = prunes.reduce((latest, { before }) => (before > latest ? before : latest), '')
  return {
    ...counts,
    max_quarantined: limit.text,
    reasons: counts.quarantined === 0 ? [] : reasonsOf(runs),
    pruned: pruned === 0 ? null : { partitions: pruned, before: last },
  }
}

/** The most frequent first. */
function reasonsOf(runs: Iterable<Reasons>): string[] {
  const sums = [...sumOfReasons(runs, unlessSecret)]
  return sums.sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).map(([reason]) => reason)
}

type Reasons = Pick<FoldedRun, 'reasons'>

export function sumOfReasons(
  runs: Iterable<Reasons>,
  shown: (reason: string) => string = (reason) => reason,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { reasons } of runs) {
    for (const [given, items] of Object.entries(reasons)) {
      const reason = shown(given)
      sums.set(reason, (sums.get(reason) ?? 0) + items)
    }
  }
  return sums
}

// A share of fewer items means little: one broken item of ten does not make a tenth of all items.
const MIN_SHARED = 100

/** `transform.max_quarantined`, of one partition. */
type Allowed = { readonly text: string; isExceeded(quarantined: number, seen: number): boolean }

export function allowedOf(limit: QuarantineLimit): Allowed {
  switch (limit.kind) {
    case 'count':
      return { text: String(limit.items), isExceeded: (quarantined) => quarantined > limit.items }
    case 'share':
      return {
        text: `${limit.percent}%`,
        isExceeded: (quarantined, seen) => seen >= MIN_SHARED && 100 * quarantined > limit.percent * seen,
      }
  }
}

/** Reads the text of {@link allowedOf} back. */
export function limitFrom(text: string): QuarantineLimit {
  const value = Number.parseFloat(text)
  return text.endsWith('%') ? { kind: 'share', percent: value } : { kind: 'count', items: value }
}

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
