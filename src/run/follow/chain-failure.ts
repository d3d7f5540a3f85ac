import { ExportError, type NamedPipeline, rulesOf, SECRET_POLICIES } from '../../core/index.ts'
import { isWebPage, type Service, statusOf } from '../../extract/index.ts'
import { UnreachableError } from '../../http/index.ts'
import type { JournalEntry } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'
import { PartitionFault } from './pages/quarantine.ts'
import type { ChainsContext } from './run-context.ts'
import { causeOf, type PartitionEvents } from './tally.ts'

// So many chains in a row without a usable response have one cause. A refusal is the verdict on its query alone.
const MAX_FAILURES_IN_ROW = 20

/** Journals that a partition failed. Another chain exports the windows after it, unless the query is rejected. */
export async function failPartition(
  chain: ChainProgress,
  error: ExportError,
  { requests, events }: { readonly requests: number; readonly events: PartitionEvents },
  { pipeline, session, tally, options, service, halt, queue }: ChainsContext,
): Promise<void> {
  const { journal } = session
  const { watermark, windows, query } = chain
  const index = indexOfFault(chain, error)
  const { key } = chain.partitionAt(index)
  const alike = tally.partitionFailed(key, error)
  events.failed(index, error, { requests, alike })
  const { kind, message, next } = error
  await journal.append([
    { kind: 'failed', partition: key, requests, error: { kind, message, cause: causeOf(error), next } },
  ])
  const isOfFeed = chain.feedWindows !== null
  // Without the cursor nothing shows that a variable still holds the secret whose rows are exported.
  const isOfSecret = query.type === 'secret' && !SECRET_POLICIES[pipeline.transform.secret].isKeyed
  const isRefused = error.kind === 'refused' && (chain.folded === undefined || isOfFeed || isOfSecret)
  // If the chain is before the failed partition, it can continue up to there; else it waits for the next run.
  const keep = index > watermark ? index : index + 1
  // Another chain would export the committed rows of later windows again. There are none while rows come in order.
  if (!isRefused && !isOfFeed && !chain.hasItems(keep)) {
    if (index + 1 < windows.count)
      queue.add({ kind: 'new', query, windows: windows.part(index + 1, windows.count) })
    if (chain.folded !== undefined && keep < windows.count)
      await journal.append([{ kind: 'shorten', chain: chain.chain, windows: keep }])
    if (index > watermark) {
      if (chain.folded === undefined) queue.add({ kind: 'new', query, windows: windows.part(0, index) })
      else queue.add({ kind: 'begun', query, chain: chain.chain, wanted: index, keep: null })
    }
  }
  if (options.failFast || isOutOfReach(error, service)) return halt.stopFor(error)
  if (error.kind === 'refused' || error.kind === 'cursor') tally.failuresInRow = 0
  if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.stopFor(tooManyFailures(pipeline, error))
}

/** What all other chains would meet, too, so that no partition fails for it; null: it may concern this one alone. */
export function concernsAll(error: ExportError, { pipeline, service }: ChainsContext): ExportError | null {
  const status = statusOf(error)
  if (error.kind === 'transient' && status === 429) return error
  const isSearch = rulesOf(pipeline.extract.resource).reading === 'search'
  const isOfAddress = isSearch && error.kind === 'refused' && status === 404
  return isOfAddress && !service.counters.hasSucceeded ? wrongAddress(service, error) : null
}

/** A partition with too many rejected items, of which nothing is left to request. */
export function endedEntry(fault: PartitionFault, chain: ChainProgress): JournalEntry {
  const { kind, message, next } = fault
  const error = { kind, message, cause: causeOf(fault), next, ended: true as const }
  return { kind: 'failed', partition: chain.partitionAt(fault.index).key, requests: 0, error }
}

/** Counts a partition whose {@link endedEntry} is committed. Its chain goes on. */
export function failEnded(
  chain: ChainProgress,
  fault: PartitionFault,
  events: PartitionEvents,
  { pipeline, tally, options, halt }: ChainsContext,
): void {
  const alike = tally.partitionFailed(chain.partitionAt(fault.index).key, fault)
  events.failed(fault.index, fault, { requests: 0, alike })
  if (options.failFast) halt.stopFor(fault)
  else if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.stopFor(tooManyFailures(pipeline, fault))
}

/** Whether the service was never reached, or another server answers: all other chains would fail the same way. */
function isOutOfReach(error: ExportError, { counters }: Service): boolean {
  return error.cause instanceof UnreachableError
    ? !counters.isReached
    : isWebPage(error) && !counters.hasSucceeded
}

/** The index of the partition that fails: the one at fault unless its chain has passed it, else the current one. */
function indexOfFault({ watermark, windows, feedWindows }: ChainProgress, error: ExportError): number {
  // A feed fails as a whole: its windows have what came before.
  if (feedWindows !== null) return 0
  if (error instanceof PartitionFault && error.index >= watermark) return error.index
  return Math.min(watermark, windows.count - 1)
}

function wrongAddress({ endpoints: { search } }: Service, cause: ExportError): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The service responds with 404 to the first search: nothing is at this address',
    where: `${search.origin}${search.pathname}`,
    next: 'Correct service.base_url (its prefix segment is a part of it: https://api.example.com/firework) or service.search_path. If the address is right, leave out the first query.',
    cause,
  })
}

function tooManyFailures(pipeline: NamedPipeline, last: ExportError): ExportError {
  return new ExportError({
    kind: last.kind,
    what: `${MAX_FAILURES_IN_ROW} partitions failed one after the other; the last: ${last.what}`,
    where: pipeline.service.baseUrl,
    next: 'Run again when the service is well; what is committed stays.',
    cause: last,
  })
}
