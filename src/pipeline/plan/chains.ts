import { type NamedQuery, type Order, type Window, WindowRun } from '../../core/index.ts'

/** What earlier runs have begun of one query. */
export type Begun = {
  /** Whether each partition is done, by the name of its window ({@link windowRange}); also those without rows. */
  readonly windows: ReadonlyMap<string, { readonly done: boolean }>
  /** Chains that have not ended. */
  readonly chains: readonly BegunChain[]
}

export type BegunChain = {
  readonly chain: number
  readonly windows: WindowRun
  /** The number of its windows, from the beginning, that can get no more rows. */
  readonly watermark: number
}

/** What is requested: one query over adjacent windows. */
export type PlannedChain =
  | { readonly kind: 'new'; readonly query: NamedQuery; readonly windows: WindowRun }
  | {
      readonly kind: 'begun'
      readonly query: NamedQuery
      readonly chain: number
      /** How many of its windows, from the beginning, are wanted; 0: the chain is not continued. */
      readonly wanted: number
      /** New chains take its windows from this index on; null: it keeps all, for another run. */
      readonly keep: number | null
    }

/** A window and its name. Names are made once: a plan may use each ten thousand times. */
export type Named = { readonly name: string; readonly window: Window | null }

/**
 * The fewest chains that export what is not done: those that have begun, up to their last wanted window, then one for
 * each run of adjacent windows. @param windows all that are wanted, done or not, in ascending order
 */
export function* chainsOf(
  query: NamedQuery,
  windows: readonly Named[],
  begun: Begun | null,
  { order, perChain }: { readonly order: Order; readonly perChain: number | null },
): Generator<PlannedChain> {
  const left = new Map<string, Window | null>()
  for (const { name, window } of windows) if (begun?.windows.get(name)?.done !== true) left.set(name, window)
  for (const chain of begun?.chains ?? []) {
    const { wanted, keep } = shareOf(chain, left, begun!.windows)
    if (wanted > 0 || keep !== null) yield { kind: 'begun', query, chain: chain.chain, wanted, keep }
  }
  const runs: (Window | null)[][] = []
  for (const window of left.values()) {
    const last = runs.at(-1)
    const isAdjacent = window !== null && last?.at(-1)?.until === window.from
    if (last !== undefined && isAdjacent && last.length < (perChain ?? Number.POSITIVE_INFINITY))
      last.push(window)
    else runs.push([window])
  }
  if (order === 'desc') runs.reverse()
  for (const run of runs) yield { kind: 'new', query, windows: WindowRun.of(order, run) }
}

/**
 * How many windows a chain has to export, which leave `left`, and how many it may keep (null: all). It keeps those with
 * rows of it: another chain would export these again.
 */
function shareOf(
  { windows, watermark }: BegunChain,
  left: Map<string, Window | null>,
  begun: Begun['windows'],
): { readonly wanted: number; readonly keep: number | null } {
  const { names } = windows
  let held = 0
  let wanted = watermark
  while (wanted < names.length && left.has(names[wanted]!)) wanted++
  if (wanted === watermark) wanted = 0
  let isReopened = false
  for (const [index, name] of names.entries()) {
    if (begun.get(name)?.done !== false) continue
    held = index + 1
    if (!left.has(name)) continue
    wanted = Math.max(wanted, held)
    // A window that a late row has reopened is done when the chain ends.
    if (index < watermark) isReopened = true
  }
  if (isReopened) wanted = names.length
  const others = new Map(left)
  for (const name of names.slice(0, wanted)) others.delete(name)
  const keep = firstOverlap(windows, Math.max(watermark, held, isReopened ? 0 : wanted), others)
  wanted = Math.min(wanted, keep ?? wanted)
  for (const name of names.slice(0, wanted)) left.delete(name)
  return { wanted, keep }
}

/** The index of the first window of a chain, from `from` on, that overlaps one of those that are left; null: none. */
function firstOverlap(
  windows: WindowRun,
  from: number,
  left: ReadonlyMap<string, Window | null>,
): number | null {
  if (from >= windows.count || left.size === 0) return null
  const { range } = windows.part(from, windows.count)
  let first: number | null = null
  for (const window of left.values()) {
    if (range === null || window === null) return from
    if (window.from >= range.until || window.until <= range.from) continue
    const meets =
      windows.order === 'asc' ? Math.max(window.from, range.from) : Math.min(window.until, range.until) - 1
    const index = windows.indexOfInstant(meets)
    first = Math.min(first ?? index, index)
  }
  return first
}
