import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSocketServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import {
  type Clock,
  ExportError,
  isFeed,
  nameQuery,
  partition,
  type Query,
  type ServiceSettings,
  systemClock,
  visibleLabel,
  type Window,
} from '../../src/core/index.ts'
import {
  type ExtractedPage,
  extractPages,
  type PageRequests,
  type PageStart,
  type ReadPage,
  Service,
  type ServiceDeps,
  type ServiceLimits,
} from '../../src/extract/index.ts'
import { type DecodedPage, SeenCursors } from '../../src/rows/index.ts'
import { portOf } from '../support/listening.ts'

export { failure } from '../support/failure.ts'

export type Received = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly json: Record<string, unknown>
}

export type TestServer = { readonly url: string; readonly received: Received[] }

/** An HTTP server on 127.0.0.1 that records requests; `respond` also gets the index of the request. */
export function serve(respond: Respond): Promise<TestServer> {
  return serveAll(respond, () => false)
}

/** The same for a service without a test of tokens: a run asks for it first, and it is not recorded. */
export function serveSearches(respond: Respond): Promise<TestServer> {
  return serveAll(respond, (url) => url.endsWith('/tokens/test'))
}

type Respond = (request: Received, response: ServerResponse, index: number) => void

async function serveAll(respond: Respond, isAbsent: (url: string) => boolean): Promise<TestServer> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (isAbsent(request.url ?? '')) return void response.writeHead(404).end()
    const body = Buffer.concat(chunks).toString()
    const entry: Received = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body,
      json: body === '' ? {} : JSON.parse(body),
    }
    const index = received.push(entry) - 1
    respond(entry, response, index)
  })
  return { url: `http://127.0.0.1:${await portOf(server)}`, received }
}

/** A bare socket server: `respond` gets the socket once a whole request has come in. */
export async function serveRaw(respond: (socket: Socket, index: number) => void): Promise<{ url: string }> {
  let count = 0
  const server = createSocketServer((socket) => {
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/.exec(text)?.[1] ?? 0)
      if (end < 0 || text.length < end + 4 + length) return
      text = ''
      respond(socket, count++)
    })
  })
  return { url: `http://127.0.0.1:${await portOf(server)}` }
}

export function sendJson(
  response: ServerResponse,
  value: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string | string[]> } = {},
): void {
  // Bigints become integers, which JSON.stringify refuses to write.
  const json = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `bigint ${each}` : each))
  const text = json.replaceAll(/"bigint (-?\d+)"/g, '$1')
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

export function sendPage(response: ServerResponse, next: string | null, items: unknown[] = [1]): void {
  sendJson(response, { items, next })
}

export type FakeClock = Clock & {
  /** Lengths of the waits so far, in milliseconds. */
  readonly waits: number[]
  /** Times at which waits end, soonest first. */
  readonly pending: () => number[]
  advance(ms: number): void
}

/**
 * Virtual time that starts at `startMs`. `auto`: as soon as nothing else is left to do it jumps to the end of the
 * next wait; otherwise only `advance` moves it.
 */
export function fakeClock({ auto = true, startMs = Date.parse('2024-07-01T00:00:00Z') } = {}): FakeClock {
  let elapsedMs = 0
  const waits: number[] = []
  const sleepers: { at: number; wake: () => void }[] = []
  let pumping = false

  function pump(): void {
    pumping = false
    sleepers.sort((a, b) => a.at - b.at)
    const first = sleepers.shift()
    if (first === undefined) return
    elapsedMs = Math.max(elapsedMs, first.at)
    first.wake()
    schedule()
  }
  function schedule(): void {
    if (!auto || pumping || sleepers.length === 0) return
    pumping = true
    setImmediate(pump)
  }

  return {
    waits,
    pending: () => sleepers.map(({ at }) => at).sort((a, b) => a - b),
    now: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        waits.push(ms)
        const sleeper = { at: elapsedMs + ms, wake: done }
        function done(): void {
          signal.removeEventListener('abort', stop)
          resolve()
        }
        function stop(): void {
          sleepers.splice(sleepers.indexOf(sleeper), 1)
          reject(signal.reason)
        }
        signal.addEventListener('abort', stop, { once: true })
        sleepers.push(sleeper)
        schedule()
      }),
    advance(ms) {
      elapsedMs += ms
      for (const due of sleepers.filter(({ at }) => at <= elapsedMs)) {
        sleepers.splice(sleepers.indexOf(due), 1)
        due.wake()
      }
    },
  }
}

export type OpenOptions = Partial<ServiceDeps> & {
  settings?: Partial<ServiceSettings>
  limits?: Partial<ServiceLimits>
  addresses?: Partial<ServiceSettings['addresses']>
  secrets?: Record<string, string>
}

export function open(url: string, options: OpenOptions = {}): Service {
  const { settings, limits, addresses, secrets, ...deps } = options
  const service = new Service(
    {
      baseUrl: url,
      auth: { kind: 'token', secretIn: 'TOKEN' },
      addresses: {
        search_path: '/v4/credentials/global/_search',
        report_path: '/v4/threat_flow/reports',
        feed_path: '/v2/me/feed/credentials',
        identifier_feed_path: '/v3/identifiers/{id}/feed/credentials',
        ...addresses,
      },
      ...{ organization: null, requestsPerSecond: 10_000, basicRequestsPerSecond: 10_000 },
      ...{ rowsPerSearch: 100, timeoutMs: 10_000, retries: 3, maxResponseBytes: 1_000_000 },
      ...settings,
    },
    { maxRequests: null, minSearchesRemaining: null, monthly: null, connections: 8, ...limits },
    {
      clock: systemClock,
      readSecret: async (name) => ({ TOKEN: 'the-token', ...secrets })[name] ?? null,
      stop: new AbortController().signal,
      abort: new AbortController().signal,
      log: () => {},
      hidesTexts: false,
      ...deps,
    },
  )
  onTestFinished(() => service.close())
  return service
}

export const JULY: Window = {
  from: Date.parse('2024-07-01T00:00:00Z') * 1000,
  until: Date.parse('2024-08-01T00:00:00Z') * 1000,
}

/** What a test tells of a chain: how its pages are requested, and from where. */
export type Chain = PageRequests['chain'] &
  Pick<PageRequests, 'sizes' | 'mayRestart' | 'mayPrefetch'> &
  Omit<PageStart, 'size'> & { readonly partition: string; readonly pageSize: number }

type ChainOptions = Partial<Chain> & { readonly window?: Window | null }

/** A chain over one window, which continues as long as there are pages. */
export function chainOf(query: Query, { window = JULY, ...rest }: ChainOptions = {}): Chain {
  const { key, query: named } = partition(nameQuery(query, visibleLabel(query, 'keep') ?? ''), window)
  return {
    resource: isFeed(named) ? 'feed' : named.type.startsWith('report') ? 'reports' : 'credentials',
    query: named,
    requested: window,
    partition: key,
    ...{ secret: null, include: [], order: 'asc', pageSize: 10_000, sizes: null, mayRestart: true },
    ...{ isTrial: false, cursor: null, cursorSize: null, since: null, page: 0, seen: new SeenCursors() },
    mayPrefetch: () => false,
    ...rest,
  }
}

export function domainChain(options: ChainOptions = {}): Chain {
  return chainOf({ type: 'domain', fqdn: 'acme.example' }, options)
}

/** Requests the pages of a chain. */
export function pagesOf(service: Service, chain: Chain, read: ReadPage = decode) {
  const { sizes, mayRestart, mayPrefetch, partition, pageSize: size } = chain
  const about = (page: number): string => `${partition}, page ${page + 1}`
  const requests = { service, chain, about, sizes, mayRestart, mayPrefetch, onRequest: () => {} }
  return extractPages(requests, { ...chain, size }, read)
}

/** The least that a decoder does: read `items` and `next`. */
export const decode: ReadPage = async (body) => {
  const page = parse(body)
  return emptyPage({ next: page.next ?? null, items: page.items?.length ?? 0 })
}

function parse(body: Uint8Array): { items?: unknown[]; next?: string | null } {
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    throw new ExportError({
      kind: 'transient',
      what: 'The response is no JSON',
      where: '',
      next: 'Run again.',
    })
  }
}

export function emptyPage(page: Partial<DecodedPage>): DecodedPage {
  return {
    ...{ next: null, recordBatch: null, rows: 0, items: 0, repeated: 0, forgotten: [], met: false },
    ids: { rows: new Int32Array(0), rejected: new Int32Array(0) },
    ...{ times: null, span: null, quarantined: [], unknownFields: {} },
    ...page,
  }
}

export async function collect(service: Service, chain: Chain, how = decode): Promise<ExtractedPage[]> {
  const pages: ExtractedPage[] = []
  for await (const page of pagesOf(service, chain, how)) pages.push(page)
  return pages
}
