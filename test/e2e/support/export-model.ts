import { isObject, isValid } from '../../support/rows.ts'
import type { Sandbox } from '../../support/sandbox.ts'

/** A row as the model knows it. */
export type ModelRow = {
  /** As in the name of a partition: `domain.scatterholt.com`, `feed.1`. */
  readonly query: string
  readonly id: number
  /** First day of the month in which it was imported, as in the name of a partition. */
  readonly month: string
  readonly identity: string
}

/** What an export may hold and must hold, after the commands so far. Uses no code of the product. */
export class ExportModel {
  /** Every valid row that the service has, by `keyOf`. */
  universe = new Map<string, ModelRow>()
  /** Keys that the export held after the last command. */
  held: ReadonlySet<string> = new Set()
  private readonly pruned = new Map<string, PrunedPartition>()
  private readonly forgotten = new Set<string>()
  private readonly lateRowsCome: boolean

  /** @param lateRowsCome whether rows of earlier months may come late, so that a pruned window is exported anew */
  constructor(lateRowsCome: boolean) {
    this.lateRowsCome = lateRowsCome
  }

  /** Records partitions that `prune` removed, by their names: `<query>/<from>..<until>`. */
  prune(partitions: readonly string[]): void {
    for (const name of partitions) {
      const [query, window] = name.split('/') as [string, string]
      const partition = `${query}/${window.slice(0, 10)}`
      const keys = [...this.held].filter((key) => partitionOf(this.universe.get(key)!) === partition)
      const earlier = this.pruned.get(partition)?.keys ?? []
      this.pruned.set(partition, { keys: new Set([...earlier, ...keys]), isExportedAnew: false })
    }
  }

  /** `--redo` exports pruned partitions again, those of queries that are still in the pipeline. */
  redo(pattern: string, isPlanned: (query: string) => boolean): void {
    for (const partition of [...this.pruned.keys()])
      if (isPlanned(partition.split('/')[0]!) && isMatch(pattern, partition)) this.pruned.delete(partition)
  }

  /** `--fresh` exports pruned rows again; forgotten people stay forgotten. */
  startAnew(): void {
    this.pruned.clear()
  }

  forget(identity: string): void {
    this.forgotten.add(folded(identity))
  }

  isForgotten(row: ModelRow): boolean {
    return this.forgotten.has(folded(row.identity))
  }

  isPruned(row: ModelRow): boolean {
    return this.pruned.has(partitionOf(row))
  }

  /** What must not be there: rows that occur twice, that the service does not have, that were pruned or forgotten. */
  wrong(found: readonly string[]): string[] {
    const wrong: string[] = []
    const seen = new Set<string>()
    for (const key of found) {
      const row = this.universe.get(key)
      if (seen.has(key)) wrong.push(`${key} occurs twice`)
      else if (row === undefined) wrong.push(`${key} is unknown`)
      else if (this.isForgotten(row)) wrong.push(`${key} was forgotten`)
      seen.add(key)
    }
    return [...wrong, ...this.prunedAmong(seen)]
  }

  /** Rows that were held before and have gone, although `mayGo` does not hold for them. */
  lost(found: readonly string[], mayGo: (row: ModelRow) => boolean): string[] {
    const now = new Set(found)
    return [...this.held].filter((key) => !now.has(key) && !mayGo(this.universe.get(key)!))
  }

  missing(found: readonly string[], isPlanned: (row: ModelRow) => boolean): string[] {
    const now = new Set(found)
    const isWanted = (row: ModelRow) => isPlanned(row) && !this.isForgotten(row) && !this.isPruned(row)
    return [...this.universe].flatMap(([key, row]) => (isWanted(row) && !now.has(key) ? [key] : []))
  }

  /** A late row of a pruned window lets that window be exported anew; without one, no pruned row comes back. */
  private prunedAmong(found: ReadonlySet<string>): string[] {
    const back: string[] = []
    for (const key of found) {
      const row = this.universe.get(key)
      const partition = row && this.pruned.get(partitionOf(row))
      if (!partition) continue
      if (this.lateRowsCome && !partition.keys.has(key)) partition.isExportedAnew = true
      else back.push(key)
    }
    return back
      .filter((key) => !this.pruned.get(partitionOf(this.universe.get(key)!))!.isExportedAnew)
      .map((key) => `${key} was pruned`)
  }
}

type PrunedPartition = { readonly keys: ReadonlySet<string>; isExportedAnew: boolean }

export function keyOf(query: string, id: number | string): string {
  return `${query}#${id}`
}

export function rowsOfDomains(sandbox: Sandbox, domains: readonly string[]): Map<string, ModelRow> {
  const rowsOf = (fqdn: string) => [...sandbox.expected({ query: { type: 'domain', fqdn } })].filter(isValid)
  return byKey(domains.flatMap((fqdn) => rowsOf(fqdn).map((item) => modelRow(`domain.${fqdn}`, item))))
}

/** The valid rows that feeds have sent so far. @param feeds null: the tenant */
export function rowsOfFeeds(sandbox: Sandbox, feeds: readonly (number | null)[]): Map<string, ModelRow> {
  const rowsOf = (feed: number | null) => [...sandbox.expectedFeed(feed)].filter(isValidFeedItem)
  return byKey(
    feeds.flatMap((feed) => rowsOf(feed).map((item) => modelRow(`feed.${feed ?? 'tenant'}`, item))),
  )
}

/** Items of feeds lack two fields of those of searches. */
function isValidFeedItem(item: unknown): boolean {
  if (!isObject(item)) return false
  const source = isObject(item.source) ? { is_alert_enabled: true, ...item.source } : item.source
  return isValid({ hash_type: null, ...item, source })
}

type Item = { readonly id: number; readonly imported_at: string; readonly identity_name: string }

function modelRow(query: string, item: Item): ModelRow {
  // Some times have another offset than UTC.
  const month = new Date(item.imported_at).toISOString().slice(0, 7)
  return { query, id: item.id, month: `${month}-01`, identity: item.identity_name }
}

function byKey(rows: readonly ModelRow[]): Map<string, ModelRow> {
  return new Map(rows.map((row) => [keyOf(row.query, row.id), row]))
}

const partitionOf = (row: ModelRow): string => `${row.query}/${row.month}`

function isMatch(pattern: string, partition: string): boolean {
  if (pattern === '*/*') return true
  return pattern.endsWith('/*') ? partition.startsWith(pattern.slice(0, -1)) : pattern.startsWith(partition)
}

/** Identities are compared without regard to case, spaces around them and the form of Unicode. */
const folded = (identity: string): string => identity.normalize().trim().toLowerCase()
