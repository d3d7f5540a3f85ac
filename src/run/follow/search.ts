import {
  ExportError,
  formatInstant,
  type Int64,
  int64FromJson,
  type Log,
  type SearchQuery,
  type Window,
} from '../../core/index.ts'
import type { PageSizes } from '../../extract/index.ts'
import type { PlannedChain } from '../../pipeline/index.ts'
import { countOfIds, type Position, withPage } from '../../rows/index.ts'
import { hasEnded, isInOrder, type JournalEntry } from '../../state/index.ts'
import { Chain, type ChainParts, type PageChange, type Rest, type SplitPage, type Start } from './chain.ts'
import { completeUntil, keptIds, positionAfter, restartInstant, type Untils } from './pages/position.ts'
import { PartitionFault } from './pages/quarantine.ts'

/** A search, or a list of reports: rows come in the order of its windows, or late. It ends. */
export class Search extends Chain {
  readonly doneAtEnd = []
  readonly mayPrefetch = true
  readonly mayRestart = true
  /** How many of its windows this run exports; the chain may cover more. */
  readonly #wanted: number
  #watermark = 0
  #hasEnded = false
  /** Of the pages whose ids are in the log. */
  #untils: Untils = []
  /** Committed with the next page, the first one without the cursor: an outage leaves a cursor as it is. */
  #restart: readonly JournalEntry[] = []
  #pages = 0

  constructor(parts: ChainParts & { readonly wanted: number }) {
    super(parts)
    this.#wanted = parts.wanted
  }

  get watermark(): number {
    return this.folded?.watermark ?? this.#watermark
  }

  get advanced(): number {
    const at = isInOrder(this.folded) ? this.folded?.position?.at : undefined
    const window = this.watermark < this.windows.count ? this.windows.at(this.watermark) : null
    if (at === undefined || window === null) return this.watermark
    const share = (Number(int64FromJson(at)) - window.from) / (window.until - window.from)
    const part = this.windows.order === 'asc' ? share : 1 - share
    return this.watermark + Math.min(1, Math.max(0, part))
  }

  get isOver(): boolean {
    return this.#hasEnded || (this.#wanted < this.windows.count && this.watermark >= this.#wanted)
  }

  windowAt(index: number): Window | null {
    return this.windows.at(index)
  }

  /** null: another chain has taken the window over, maybe since the page was requested. */
  indexOf(at: Int64): number | null {
    const { range } = this.windows
    if (range === null) return 0
    return at < range.from || at >= range.until ? null : this.windows.indexOfInstant(at)
  }

  indexOfItem(at: number | null): number {
    return (at === null ? null : this.indexOf(at)) ?? this.currentIndex
  }

  get openPartitions(): readonly string[] {
    return [this.current.key]
  }

  async next(): Promise<Start | null> {
    if (this.isOver) return null
    const { folded } = this
    const { next: cursor = null, since = null, requested = this.windows.range } = folded ?? {}
    // Unless it has begun again, each page but the first came by a cursor.
    const isAgain = folded !== undefined && folded.pages > 1 + (folded.seen?.size ?? 0)
    return this.#startAt({ cursor, since, requested }, isAgain)
  }

  /** @param isAgain whether rows that the chain has had come again */
  async #startAt(at: Pick<Start, 'cursor' | 'since' | 'requested'>, isAgain: boolean): Promise<Start> {
    const logged = await this.idsInLog()
    this.#untils = logged.map(({ until }) => until)
    const ids = logged.map(({ ids }) => ids)
    return { ...at, recent: ids.reduce(withPage, []), known: isAgain ? ids : [] }
  }

  async withoutCursor(refusal: ExportError, sizes: PageSizes, log: Log): Promise<Start> {
    const { query, current, chain } = this
    const folded = this.folded!
    const isOfCursor = refusal.kind === 'cursor'
    // Until this secret had a page in this run, the variable may have changed.
    if (query.type === 'secret' && this.#pages === 0)
      throw isOfCursor ? otherSecret(query, current.key, refusal) : refusal
    const instant = restartInstant(folded, this.#untils)
    if (instant === null) throw await this.lost('The service refuses the saved cursor', refusal)
    const { since } = instant
    const why = isOfCursor ? 'the service refuses the saved cursor' : 'the saved cursor is served in no size'
    const from = since === null ? 'its beginning' : formatInstant(int64FromJson(since))
    log('warn', `${why}; restarting from ${from}`, { partition: current.key })
    this.#restart = [{ kind: 'restart', chain, since }]
    const start = await this.#startAt({ cursor: null, since, requested: this.windows.range }, true)
    if (isOfCursor) return start
    // The size was the cursor's, or the service serves nothing.
    const isTrial = !sizes.bindsSizes
    const size = isTrial ? sizes.first : sizes.after(folded.size ?? sizes.first)
    return { ...start, first: { size, isTrial } }
  }

  after(split: SplitPage): PageChange {
    const { folded, windows, watermark } = this
    const { page, slices } = split
    const position = positionAfter(folded?.position ?? null, page.span, windows.order)
    const reached = this.#watermarkAfter(page.next, position)
    const isLast = reached >= windows.count
    const before = folded?.position
    const isMoved = position !== null && (position.at !== before?.at || position.late !== before.late)
    // No page after the last one could repeat its rows.
    const hasIds = !isLast && countOfIds(page.ids) > 0
    return {
      ...this.#windowsAfter(split, reached),
      watermark: reached,
      inProgress: isLast ? [] : [reached],
      ids: hasIds ? keptIds(folded, this.#untils, page.ids, position, windows.order) : null,
      hasSchema: slices.length > 0 || page.next !== null,
      before: [...this.begin(null), ...this.#restart],
      entry: {
        watermark: reached === watermark ? undefined : reached,
        position: isMoved ? position : undefined,
        repeated: page.repeated === 0 ? undefined : page.repeated,
      },
    }
  }

  /** The last window is open until the last page; where others took over what follows, until rows were an hour late. */
  #watermarkAfter(next: string | null, position: Position | null): number {
    const { windows, watermark } = this
    const { count, order } = windows
    if (next === null) return count
    if (position === null || position.late > 0) return watermark
    const at = int64FromJson(position.at)
    if (this.#isShortened && windows.watermarkAt(completeUntil(at, order)) === count) return count
    return Math.max(watermark, Math.min(count - 1, windows.watermarkAt(at)))
  }

  /** Whether other chains export the last part of the requested range. */
  get #isShortened(): boolean {
    const { range, order } = this.windows
    const requested = this.folded?.requested ?? null
    if (requested === null || range === null) return false
    return order === 'asc' ? range.until < requested.until : range.from > requested.from
  }

  #windowsAfter({ rows, rejected }: SplitPage, reached: number): Pick<PageChange, 'finished' | 'reopened'> {
    const { count } = this.windows
    const isLast = reached >= count
    const isOver = (index: number): boolean => {
      const folded = this.foldedAt(index)
      return folded !== undefined && hasEnded(folded)
    }
    const touched = [...rows.keys(), ...rejected.keys()]
    const late = new Set(touched.filter((index) => index < this.watermark && isOver(index)))
    const finished: number[] = []
    // Windows with late rows were open until now.
    for (let index = isLast ? 0 : this.watermark; index < (isLast ? count : reached); index++)
      if (!isOver(index) || late.has(index)) finished.push(index)
    return { finished, reopened: [...late] }
  }

  committed({ watermark, ids }: PageChange): void {
    this.#restart = []
    this.#pages++
    if (ids !== null) this.#untils = [...this.#untils.slice(this.#untils.length - ids.keep), ids.until]
    this.#watermark = watermark
    this.#hasEnded = this.folded === undefined
  }

  /** The one at fault unless the chain has passed it, else the current one. */
  indexOfFault(error: ExportError): number {
    return error instanceof PartitionFault && error.index >= this.watermark ? error.index : this.currentIndex
  }

  /** Other chains export what is behind the partition, and this one what is before it; else it waits for the next run. */
  rest(index: number, { kind }: ExportError, hasKeyedSecrets: boolean): Rest {
    const { query, windows, chain, folded, watermark } = this
    // Without the cursor nothing shows that a variable still holds the secret whose rows are exported.
    const isOfSecret = query.type === 'secret' && !hasKeyedSecrets
    const isRefused = kind === 'refused' && (folded === undefined || isOfSecret)
    const keep = index > watermark ? index : index + 1
    // Another chain would export the committed rows of later windows again. There are none while rows come in order.
    if (isRefused || this.#hasItemsFrom(keep)) return { chains: [], keep: null }
    const chains: PlannedChain[] = []
    if (index > watermark)
      chains.push(
        folded === undefined
          ? { kind: 'new', query, windows: windows.part(0, index) }
          : { kind: 'begun', query, chain, wanted: index, keep: null },
      )
    if (index + 1 < windows.count)
      chains.push({ kind: 'new', query, windows: windows.part(index + 1, windows.count) })
    return { chains, keep: folded !== undefined && keep < windows.count ? keep : null }
  }

  /** Whether rows or rejected items of its windows are committed, from an index on. */
  #hasItemsFrom(first: number): boolean {
    for (let index = first; index < this.windows.count; index++) {
      const folded = this.foldedAt(index)
      if (folded !== undefined && folded.rows + folded.quarantined > 0) return true
    }
    return false
  }

  /** The next run exports its partitions anew. */
  protected async lost(why: string, cause?: ExportError): Promise<ExportError> {
    await this.journal.append([{ kind: 'restart', chain: this.chain, since: null, lost: true }])
    return new ExportError({
      kind: 'refused',
      what: `${why}, and there is no instant from which all rows are known`,
      where: this.current.key,
      next: 'Run again: the partitions of this query that are not done are exported anew, and what is exported stays until then.',
      ...(cause === undefined ? {} : { cause }),
    })
  }
}

/** A refused cursor may be of another query: the variable may have changed, unless secrets are masked by hmac. */
function otherSecret(
  query: SearchQuery & { type: 'secret' },
  where: string,
  cause: ExportError,
): ExportError {
  return new ExportError({
    kind: 'refused',
    what: `The service refuses the saved cursor, and it is not known whether ${query.secretEnv} still holds the secret whose rows are exported`,
    where,
    next: `If ${query.secretEnv} was changed, restore it and run again; if it was not, the cursor has expired: export the query to another load.path, or start over with --fresh.`,
    cause,
  })
}
