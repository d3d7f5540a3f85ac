import { ExportError, type NamedPipeline, rulesOf, SECRET_POLICIES } from '../../core/index.ts'
import { isWebPage, type Service, statusOf } from '../../extract/index.ts'
import { UnreachableError } from '../../http/index.ts'
import type { JournalEntry } from '../../state/index.ts'
import type { Chain } from './chain.ts'
import type { PartitionFault } from './pages/quarantine.ts'
import type { ChainsContext } from './run-context.ts'
import { causeOf, type PartitionEvents } from './tally.ts'

// So many chains in a row without a usable response have one cause. A refusal is the verdict on its query alone.
const MAX_FAILURES_IN_ROW = 20

/** Journals that a partition failed. Other chains export what is left, unless the query is rejected. */
export async function failPartition(
  chain: Chain,
  error: ExportError,
  { requests, events }: { readonly requests: number; readonly events: PartitionEvents },
  { pipeline, session, tally, options, service, halt, queue }: ChainsContext,
): Promise<void> {
  const { journal } = session
  const index = chain.indexOfFault(error)
  const { key } = chain.partitionAt(index)
  const alike = tally.partitionFailed(key, error)
  events.failed(index, error, { requests, alike })
  const { kind, message, next } = error
  await journal.append([
    { kind: 'failed', partition: key, requests, error: { kind, message, cause: causeOf(error), next } },
  ])
  const { chains, keep } = chain.rest(index, error, SECRET_POLICIES[pipeline.transform.secret].isKeyed)
  if (keep !== null) await journal.append([{ kind: 'shorten', chain: chain.chain, windows: keep }])
  queue.add(chains)
  if (options.failFast || isOutOfReach(error, service)) return halt.stopFor(error)
  if (kind === 'refused' || kind === 'cursor') tally.failuresInRow = 0
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
export function endedEntry(fault: PartitionFault, chain: Chain): JournalEntry {
  const { kind, message, next } = fault
  const error = { kind, message, cause: causeOf(fault), next, ended: true as const }
  return { kind: 'failed', partition: chain.partitionAt(fault.index).key, requests: 0, error }
}

/** Counts a partition whose {@link endedEntry} is committed. Its chain goes on. */
export function failEnded(
  chain: Chain,
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
