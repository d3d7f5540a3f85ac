import { type NamedQuery, type Order, type Window, WindowRun } from '../core/index.ts'

/** What of one query has begun. */
export type Begun = {
  /** Whether they are done, by the name of their window ({@link windowRange}): partitions that have rows, or have none to get. */
  readonly windows: ReadonlyMap<string, { readonly done: boolean }>
  /** Chains that are not at their end. */
  readonly chains: readonly BegunChain[]
}

export type BegunChain = {
  readonly chain: number
  readonly windows: WindowRun
  /** Number of its windows, from the beginning, to which nothing more can come. */
  readonly watermark: number
}

/** What is requested: one query over adjacent windows. */
export type PlannedChain =
  | { readonly kind: 'new'; readonly query: NamedQuery; readonly windows: WindowRun }
  | {
      readonly kind: 'begun'
      readonly query: NamedQuery
      readonly chain: number
      /** How many of its windows, from the beginning, are wanted; 0: it is left where it stands. */
      readonly wanted: number
      /** The others are left to new chains, all from this one on; null: to itself, in another run. */
      readonly keep: number | null
    }

/** A window and its name; names are made once, as a plan may use each of them ten thousand times. */
export type Named = { readonly name: string; readonly window: Window | null }

/**
 * The fewest chains that bring what is not done of a query: those that have begun, as far as their windows are wanted
 * from where they stand, then one for each run of adjacent windows.
 * @param windows all that are wanted, done or not, in ascending order
 * @param travel.perChain how many windows a chain may have; null: any number
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
 * How many windows of a chain, from the beginning, it takes to have those that are wanted from where it stands; and how
 * many it may keep so that none is in the way of new chains, null: all of them. Windows that have rows of it already it
 * keeps: another chain would bring these again.
 * @param left what is wanted and not done; loses what the chain brings
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
    // What a row that came late has opened again is done when the chain is at its end.
    if (index < watermark) isReopened = true
  }
  if (isReopened) wanted = names.length
  const others = new Map(left)
  for (const name of names.slice(0, wanted)) others.delete(name)
  const keep = inTheWay(windows, Math.max(watermark, held, isReopened ? 0 : wanted), others)
  wanted = Math.min(wanted, keep ?? wanted)
  for (const name of names.slice(0, wanted)) left.delete(name)
  return { wanted, keep }
}

/** The first window of a chain, from an index on, that overlaps one of those that are left; null: none. */
function inTheWay(windows: WindowRun, from: number, left: ReadonlyMap<string, Window | null>): number | null {
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
