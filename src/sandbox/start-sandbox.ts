import { setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { credentials } from './data/credentials.ts'
import { DEMO_DOMAINS } from './data/words.ts'
import { type LoggedRequest, PREFIX, requestLog, type Service } from './http/routes.ts'
import { tokens } from './http/tokens.ts'
import { resolveOptions, type SandboxOptions, type Settings } from './options.ts'
import { type Interception, requestListener } from './request-listener.ts'
import { arrivals, feed, importOrder } from './search/feed.ts'
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
  /** Stops at once: open connections are destroyed. */
  close(): Promise<void>
}

/** @throws SandboxOptionError when an option is out of range; Node's own error when the port is taken */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = resolveOptions(options)
  return serve(settings, makeService(settings).service, () => null)
}

/** The service, and the data that it serves. @param orderOf in which order the feeds get it */
export function makeService(settings: Settings, orderOf = importOrder) {
  const data = credentials(settings)
  const arrived = arrivals(settings, data, orderOf(settings, data))
  const service = {
    search: search(settings, data),
    feed: feed(settings, arrived),
    reports: reports(settings.cursorKey),
    tokens: tokens(settings),
  }
  return { data, arrived, service }
}

/** @param intercept called with each request @throws Node's own error when the port is taken */
export async function serve(
  settings: Settings,
  service: Service,
  intercept: (request: LoggedRequest) => Interception | null,
): Promise<Sandbox> {
  const log = requestLog()
  const closing = new AbortController()
  // Every delayed response adds a listener.
  setMaxListeners(0, closing.signal)
  const server = createServer(requestListener(settings, service, log, closing.signal, intercept))
  // Longer than requests are apart at usual rates. Node's default of 5 s would close connections that are used again.
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(settings.port, '127.0.0.1', resolve)
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  let closed: Promise<void> | null = null
  return {
    origin,
    baseUrl: origin + PREFIX,
    token: settings.token,
    apiKey: settings.apiKey,
    requests: log.entries,
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

/** Lines that a shell can evaluate, base URL and token first, then a hint as a comment. Ends without a newline. */
export function sandboxBanner(
  sandbox: Pick<Sandbox, 'origin' | 'baseUrl' | 'token' | 'apiKey'>,
  domains: readonly string[] = DEMO_DOMAINS,
): string {
  return [
    `SPILLWAY_BASE_URL=${sandbox.baseUrl}`,
    `SPILLWAY_TOKEN=${sandbox.token}`,
    `SPILLWAY_API_KEY=${sandbox.apiKey}`,
    `SPILLWAY_TOKEN_URL=${sandbox.origin}/tokens/generate`,
    `# Data of ${domains.join(', ')}`,
    '# Export these variables in another shell, and run a pipeline of these domains.',
  ].join('\n')
}
