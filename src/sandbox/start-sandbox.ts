import { setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { credentials } from './data/credentials.ts'
import { sources } from './data/sources.ts'
import { timeline } from './data/timeline.ts'
import { type LoggedRequest, requestLog } from './http/routes.ts'
import { tokens } from './http/tokens.ts'
import { resolveOptions, type SandboxOptions } from './options.ts'
import { requestListener } from './request-listener.ts'
import { type CredentialJson, type ExpectedSearch, expectedCredentials } from './search/expected.ts'
import { type FeedItem, feed } from './search/feed.ts'
import { reports } from './search/reports.ts'
import { search } from './search/search.ts'

export type Sandbox = {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** The origin and the prefix segment. */
  readonly baseUrl: string
  readonly token: string
  readonly apiKey: string
  /** Every request so far, oldest first. */
  readonly requests: readonly LoggedRequest[]
  /**
   * The credentials that a complete and correct export of a search holds, oldest first, straight from
   * the generator. Broken ones (`invalidRate`) come as broken as on the wire.
   */
  expected(search: ExpectedSearch): Iterable<CredentialJson>
  /** What a feed has had so far, in the order in which it came; null: the tenant's. */
  expectedFeed(identifier: number | null): Iterable<FeedItem>
  /** Stops at once: open connections are destroyed. */
  close(): Promise<void>
}

/**
 * Serves an emulation of the service with made-up data on 127.0.0.1.
 * @throws SandboxOptionError when an option is out of range; Node's own error when the port is taken
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = resolveOptions(options)
  const { seed, domains, records, from, until } = settings
  const data = credentials(
    settings,
    timeline(seed, domains.length, records, from, until),
    sources(seed, settings.sources, from, settings.nastyRate > 0, settings.publicFields),
  )
  const service = {
    search: search(settings, data),
    feed: feed(settings, data),
    reports: reports(settings.cursorKey),
    tokens: tokens(settings),
  }
  const log = requestLog()
  const closing = new AbortController()
  // Every delayed response adds a listener.
  setMaxListeners(0, closing.signal)
  const server = createServer(requestListener(settings, service, log, closing.signal))
  // Longer than the interval between requests at any usual rate limit. Node's default of 5 s would close connections that
  // slow clients use again.
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(settings.port, '127.0.0.1', resolve)
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  let closed: Promise<void> | null = null
  return {
    origin,
    baseUrl: `${origin}/${settings.prefix}`,
    token: settings.token,
    apiKey: settings.apiKey,
    requests: log.entries,
    expected: (wanted) => expectedCredentials(data, wanted),
    expectedFeed: (identifier) => service.feed.items(identifier),
    close() {
      closed ??= new Promise<void>((resolve) => {
        closing.abort()
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return closed
    },
  }
}

/**
 * What `spillway sandbox` prints first: lines that a shell can evaluate, base URL and token at the top,
 * then a hint as a comment. Ends without a newline.
 */
export function sandboxBanner(sandbox: Pick<Sandbox, 'origin' | 'baseUrl' | 'token' | 'apiKey'>): string {
  return [
    `SPILLWAY_BASE_URL=${sandbox.baseUrl}`,
    `SPILLWAY_TOKEN=${sandbox.token}`,
    `SPILLWAY_API_KEY=${sandbox.apiKey}`,
    `SPILLWAY_TOKEN_URL=${sandbox.origin}/tokens/generate`,
    '# Made-up data. Export these variables in another shell and run: spillway run pipelines/demo.yaml',
  ].join('\n')
}
