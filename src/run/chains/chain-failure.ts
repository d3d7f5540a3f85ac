import { ExportError, type NamedPipeline } from '../../core/index.ts'
import { ResponseError, type Service, UnreachableError } from '../../extract/index.ts'
import type { ChainProgress } from './chain-progress.ts'
import { PartitionFault } from './quarantine.ts'
import type { ChainsContext } from './run-context.ts'
import type { PartitionEvents } from './tally.ts'

// So many chains that fail one after the other, with nothing usable in between, have one cause; going on would only
// spend requests on it.
const MAX_FAILURES_IN_ROW = 20

/**
 * Journals that a partition failed. What its chain would have brought behind it is for another chain, unless the
 * service refused the query from the beginning: then it would refuse that as well.
 */
export async function failPartition(
  chain: ChainProgress,
  error: ExportError,
  { requests, events }: { readonly requests: number; readonly events: PartitionEvents },
  { pipeline, session, tally, options, service, halt, deferred, queue }: ChainsContext,
): Promise<void> {
  const { checkpoint } = session
  const { watermark, windows, query } = chain
  const index = indexOfFault(chain, error)
  const { key } = chain.partitionAt(index)
  const fail = async (): Promise<void> => {
    const alike = tally.partitionFailed(key, error)
    events.failed(index, error, { requests, alike })
    const { kind, message } = error
    const refused = error instanceof PartitionFault ? error.refused : []
    tally.refused(refused)
    const inQuarantine = refused.length === 0 ? {} : { rejected: refused.length }
    const failure = { kind, message, ...inQuarantine }
    await checkpoint.append([{ kind: 'failed', partition: key, requests, error: failure }])
  }
  if (error.kind === 'refused' && service.counters.notFound > 1) {
    deferred.drop()
    return halt.because(wrongAddress(service))
  }
  // One may be the fault of its query; of two, and nothing found, it is the address.
  if (isNotFound(error) && service.counters.notFound === 1) deferred.hold(fail)
  else {
    await deferred.settle()
    await fail()
  }
  const isRefused = error.kind === 'refused' && chain.record === undefined
  // Where it stands before the partition that failed it can go on up to there; else it waits there for the next run.
  const keep = index > watermark ? index : index + 1
  // What is exported already another chain would bring again; as long as rows come in order nothing is.
  if (!isRefused && !chain.hasItems(keep)) {
    if (index + 1 < windows.count) {
      queue.add({ kind: 'new', query, windows: windows.part(index + 1, windows.count) })
    }
    if (chain.record !== undefined && keep < windows.count) {
      await checkpoint.append([{ kind: 'shorten', chain: chain.chain, windows: keep }])
    }
    if (index > watermark) {
      if (chain.record === undefined) queue.add({ kind: 'new', query, windows: windows.part(0, index) })
      else queue.add({ kind: 'begun', query, chain: chain.chain, wanted: index, keep: null })
    }
  }
  if (options.failFast || isOutOfReach(error, service)) halt.because(error)
  else if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.because(tooManyFailures(pipeline, error))
}

/** Nothing was ever reached: it would be the same for all others. */
function isOutOfReach({ cause }: ExportError, { counters }: Service): boolean {
  return cause instanceof UnreachableError && !counters.isReached
}

function isNotFound(error: ExportError): boolean {
  return error.kind === 'refused' && error instanceof ResponseError && error.status === 404
}

/** The partition that fails: the one at fault if its chain has not gone past it, else the one it stands in. */
function indexOfFault({ watermark, windows }: ChainProgress, error: ExportError): number {
  if (error instanceof PartitionFault && error.index >= watermark) return error.index
  return Math.min(watermark, windows.count - 1)
}

/** No search was ever answered with anything but 404. */
export function wrongAddress({ endpoints: { search } }: Service): ExportError {
  return new ExportError(
    'config',
    'The service answers 404 to every search: nothing is at this address',
    `${search.origin}${search.pathname}`,
    'Correct service.base_url (its prefix segment is a part of it: https://api.example.com/firework) or service.search_path.',
  )
}

function tooManyFailures(pipeline: NamedPipeline, last: ExportError): ExportError {
  return new ExportError(
    last.kind,
    `${MAX_FAILURES_IN_ROW} partitions failed one after the other; the last: ${last.what}`,
    pipeline.service.baseUrl,
    'Run again when the service is well; what is committed stays.',
    { cause: last },
  )
}
