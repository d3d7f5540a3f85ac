import {
  type ErrorKind,
  ExportError,
  type NamedPipeline,
  rulesOf,
  SECRET_POLICIES,
} from '../../core/index.ts'
import { isWebPage, type Service, statusOf } from '../../extract/index.ts'
import { UnreachableError } from '../../http/index.ts'
import type { JournalEntry } from '../../state/index.ts'
import type { Chain } from './chain.ts'
import type { ChainsContext } from './run-context.ts'
import { causeOf } from './tally.ts'

// So many chains in a row without a usable response have one cause. A refusal is the verdict on its query alone.
const MAX_FAILURES_IN_ROW = 20

/** Journals that a partition failed. Other chains export what is left, unless the query is rejected. */
export async function failPartition(
  chain: Chain,
  error: ExportError,
  requests: number,
  run: ChainsContext,
): Promise<void> {
  const { journal } = run.session
  const index = chain.indexOfFault(error)
  run.tally.fail(chain, index, error, requests)
  await journal.append([failedEntry(chain, index, error, requests)])
  const { isKeyed } = SECRET_POLICIES[run.pipeline.transform.secret]
  const { chains, keep } = chain.rest(index, error, isKeyed)
  if (keep !== null) await journal.append([{ kind: 'shorten', chain: chain.chain, windows: keep }])
  run.queue.add(chains)
  haltAfter(error, run)
}

/** @param ended whether nothing of the partition is left to request */
export function failedEntry(
  chain: Chain,
  index: number,
  error: ExportError,
  requests: number,
  ended?: true,
): JournalEntry {
  const { kind, message, next } = error
  const { key: partition } = chain.partitionAt(index)
  return { kind: 'failed', partition, requests, error: { kind, message, cause: causeOf(error), next, ended } }
}

/** Stops the run for the failure of a partition, if others would fail like it. */
export function haltAfter(error: ExportError, run: ChainsContext): void {
  const { pipeline, tally, options, service, halt } = run
  if (error.kind === 'refused' || error.kind === 'cursor') tally.failuresInRow = 0
  if (options.failFast || isOutOfReach(error, service)) halt.stopFor(error)
  else if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.stopFor(tooManyFailures(pipeline, error))
}

/** Kinds of errors that concern one partition, as a rule. */
const OWN_ERRORS: ReadonlySet<ErrorKind> = new Set(['transient', 'refused', 'cursor', 'data'])

/** What all other chains would meet, too, so that no partition fails for it; null: it may concern this one alone. */
export function concernsAll(error: ExportError, { pipeline, service }: ChainsContext): ExportError | null {
  if (!OWN_ERRORS.has(error.kind)) return error
  const status = statusOf(error)
  if (error.kind === 'transient' && status === 429) return error
  const isSearch = rulesOf(pipeline.extract.resource).reading === 'search'
  const isOfAddress = isSearch && error.kind === 'refused' && status === 404
  return isOfAddress && !service.counters.hasSucceeded ? wrongAddress(service, error) : null
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
