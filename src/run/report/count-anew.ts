import {
  type Aggregates,
  AggregateTally,
  columnsOf,
  DATA_SET_LIMITS,
  type Pipeline,
  type Store,
} from '../../core/index.ts'
import type { KnownShard } from './known.ts'

/**
 * Counts the rows of shards by reading them, for shards of which nobody has kept what their rows come to.
 * @throws ExportError `damaged` or `storage` when one can't be read
 */
export async function countAnew(
  pipeline: Pipeline,
  store: Store,
  shards: Iterable<KnownShard>,
): Promise<Aggregates> {
  // Loaded here, as it would only lengthen the start of every other command.
  const { readAggregates } = await import('../../load/inspect/index.ts')
  const columns = columnsOf(pipeline)
  const tally = new AggregateTally(DATA_SET_LIMITS)
  for (const { path, bytes } of shards) {
    const reader = {
      size: bytes,
      slice: (start: number, end: number) => store.readRange(path, start, end),
      stream: () => store.stream(path),
    }
    await readAggregates(reader, pipeline.load.format, columns, tally)
  }
  return tally.aggregates()
}
