import { bufferPool, type Clock, type ServiceSettings } from '../core/index.ts'
import { fetchReport, openService, type Report, type TokenInfo } from '../extract/index.ts'
import type { RunObserver } from './observer.ts'

export type ServiceCallOptions = {
  readonly clock: Clock
  readonly readSecret: (name: string) => Promise<string | null>
  /** Ends waits and requests alike. */
  readonly stop: AbortSignal
  readonly log: RunObserver['log']
}

/**
 * Fetches threat-flow reports one after the other; these cost no searches.
 * @throws ExportError naming the report that could not be had
 */
export async function* fetchReports(
  settings: ServiceSettings,
  ids: readonly number[],
  options: ServiceCallOptions,
): AsyncGenerator<Report> {
  const service = openCalls(settings, options)
  try {
    for (const id of ids) yield await fetchReport(service, id)
  } finally {
    await service.close()
  }
}

/** Asks the service, free of charge, whom the token belongs to. @throws ExportError `credentials` when nobody */
export async function testToken(
  settings: ServiceSettings,
  url: string,
  options: ServiceCallOptions,
): Promise<TokenInfo> {
  const service = openCalls(settings, options)
  try {
    return await service.testToken(url)
  } finally {
    await service.close()
  }
}

function openCalls(settings: ServiceSettings, { clock, readSecret, stop, log }: ServiceCallOptions) {
  return openService(
    settings,
    { maxRequests: null, minSearchesRemaining: null, connections: 1 },
    { clock, readSecret, stop, abort: stop, log, buffers: bufferPool(1) },
  )
}
