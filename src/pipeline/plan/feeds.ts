import {
  type NamedPipeline,
  type Partition,
  parseWindow,
  partition,
  WindowRun,
  windowRange,
} from '../../core/index.ts'
import type { PlannedChain } from './chains.ts'
import type { BegunQueries, Plan } from './plan.ts'

/**
 * One chain for each feed, whatever is exported: more may have come. New feeds come first, then those that were read to
 * their ends longest ago, so that no budget leaves one out for ever.
 * @param isRead to its end in this run, by name @param begun names of feeds, in that order
 */
export function planFeeds(
  { extract: { queries } }: NamedPipeline,
  lookUp: BegunQueries,
  isRead: (query: string) => boolean,
  begun: () => Iterable<string>,
): Plan {
  const whole = WindowRun.of('asc', [null])
  function* partitions(): Generator<Partition> {
    for (const query of queries) {
      const windows = [...(lookUp(query.name)?.windows.keys() ?? [])].filter(
        (name) => name !== windowRange(null),
      )
      for (const name of windows.sort()) yield partition(query, parseWindow(name))
      yield partition(query, null)
    }
  }
  function* chains(): Generator<PlannedChain> {
    // It changes while the run reads them.
    const turns = new Map([...begun()].map((name, turn) => [name, turn]))
    const turnOf = ({ name }: { readonly name: string }): number => turns.get(name) ?? -1
    for (const query of queries.toSorted((one, other) => turnOf(one) - turnOf(other))) {
      if (isRead(query.name)) continue
      const [chain] = lookUp(query.name)?.chains ?? []
      if (chain === undefined) yield { kind: 'new', query, windows: whole }
      else yield { kind: 'begun', query, chain: chain.chain, wanted: 1, keep: null }
    }
  }
  return { partitions, chains }
}
