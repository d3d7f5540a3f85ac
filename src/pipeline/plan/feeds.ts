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
 * partitions are each feed itself, with the key `feed.123/all`, and the windows that rows have come for.
 * @param isRead whether a feed was read to its end in the run that is under way, by its name
 */
export function planFeeds(
  { extract: { queries } }: NamedPipeline,
  lookUp: BegunQueries,
  isRead: (query: string) => boolean,
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
    for (const query of queries) {
      if (isRead(query.name)) continue
      const [begun] = lookUp(query.name)?.chains ?? []
      if (begun === undefined) yield { kind: 'new', query, windows: whole }
      else yield { kind: 'begun', query, chain: begun.chain, wanted: 1, keep: null }
    }
  }
  return { partitions, chains }
}
