import { type NamedQuery, type Order, type Window, WindowRun } from '../core/index.ts'
import type { Begun, BegunChain, PlannedChain } from './plan.ts'

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
  let left = begun === null ? windows : windows.filter(({ name }) => begun.windows.get(name)?.done !== true)
  for (const chain of begun?.chains ?? []) {
    const wanted = wantedOf(chain, left)
    const taken = new Set<number | null>()
    for (let place = 0; place < wanted; place++) taken.add(chain.windows.at(place)?.from ?? null)
    left = left.filter(({ window }) => !taken.has(window?.from ?? null))
    const keep = keepOf(chain, wanted, left)
    if (wanted > 0 || keep !== null) yield { kind: 'begun', query, chain: chain.chain, wanted, keep }
  }
  const runs: (Window | null)[][] = []
  for (const { window } of left) {
    const last = runs.at(-1)
    const isAdjacent = window !== null && last?.at(-1)?.until === window.from
    if (last !== undefined && isAdjacent && last.length < (perChain ?? Number.POSITIVE_INFINITY))
      last.push(window)
    else runs.push([window])
  }
  if (order === 'desc') runs.reverse()
  for (const run of runs) yield { kind: 'new', query, windows: WindowRun.of(order, run) }
}

/** How many windows of a chain, from the beginning, it takes to have those that are wanted from where it stands. */
function wantedOf({ windows, passed }: BegunChain, left: readonly Named[]): number {
  const untilOf = new Map(left.map(({ window }) => [window?.from ?? null, window?.until ?? null]))
  const isWanted = (place: number): boolean => {
    const window = windows.at(place)
    const from = window?.from ?? null
    return untilOf.has(from) && untilOf.get(from) === (window?.until ?? null)
  }
  // What a row that came late has opened again is done when the chain is at its end.
  for (let place = 0; place < passed; place++) if (isWanted(place)) return windows.count
  let wanted = passed
  while (wanted < windows.count && isWanted(wanted)) wanted++
  return wanted === passed ? 0 : wanted
}

/** How many windows a chain may keep so that none is in the way of new chains; null: all of them. */
function keepOf({ windows, passed }: BegunChain, wanted: number, left: readonly Named[]): number | null {
  const first = Math.max(wanted, passed)
  for (let place = first; place < windows.count; place++) {
    const window = windows.at(place)
    if (left.some((other) => overlap(window, other.window))) return place
  }
  return null
}

function overlap(a: Window | null, b: Window | null): boolean {
  return a === null || b === null || (a.from < b.until && b.from < a.until)
}
