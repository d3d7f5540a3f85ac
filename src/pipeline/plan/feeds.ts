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
 * The plan of a pipeline that reads feeds: one chain for each, whatever is exported, as more may have come. Its
 * partitions are each feed itself, with the key `feed.123/all`, and the windows that rows have come for. New feeds come
 * first, then those that were read to their ends longest ago: where the budget of a run is not enough for all of them,
 * none is left out for ever.
 * @param isRead whether a feed was read to its end in the run that is under way, by its name
 * @param begun the names of feeds that have begun, those first that were read to their ends longest ago
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
