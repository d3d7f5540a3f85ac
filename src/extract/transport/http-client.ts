import type { IncomingHttpHeaders } from 'node:http'
import { freshBuffers } from '../../core/index.ts'
import type { Connections } from './connections.ts'
import { decodeContent } from './content-coding.ts'
import { exchange, type HttpLimits, type HttpRequest, isSuccess, MAX_ERROR_BYTES } from './exchange.ts'
import { proxiesOf } from './proxies.ts'
import { responseMemory } from './response-memory.ts'

export type HttpResponse = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Decoded. Of a response other than 2xx: its first 64 kB, empty when it cannot be read. */
  readonly body: Uint8Array
  /** To be called when the body is no longer needed: another large response may wait for memory. */
  release(): void
}

export type HttpClient = {
  /**
   * Sends one request and receives the complete response, whatever its status. No redirects, no retries.
   * @param onWrite called when the connection is open, just before the request is written. If it returns false, or
   *   throws, nothing is sent
   * @returns null when `onWrite` returned false
   * @throws ExportError `transient` (network, timeout, broken response), `refused` (certificate), `data`
   *   (too large, unknown coding), `interrupted`
   */
  send(request: HttpRequest, onWrite: () => boolean): Promise<HttpResponse | null>
  close(): Promise<void>
}

type HttpOptions = HttpLimits & {
  readonly connections: number
}

const CONNECT_TIMEOUT_MS = 10_000

/** @throws ExportError `config` when a proxy variable holds no address */
export function httpClient(options: HttpOptions): HttpClient {
  // Read here, so that a wrong variable is reported before anything is sent.
  const proxyOf = proxiesOf(process.env)
  let opened: Promise<Connections> | null = null
  // Loaded with the first request: some runs send none, and undici is large.
  const open = async (): Promise<Connections> => {
    const { openConnections } = await import('./connections.ts')
    return openConnections({
      connections: options.connections,
      connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs),
      proxyOf,
    })
  }
  const room = responseMemory()
  return {
    async send(request, onWrite) {
      opened ??= open()
      const connections = await opened
      const response = await exchange(
        connections,
        request,
        { ...options, connectTimeoutMs: CONNECT_TIMEOUT_MS },
        room.share(),
        onWrite,
      )
      if (response === null) return null
      const { status, headers, coding, body, share } = response
      const release = (): void => share.release()
      if (coding === 'identity') return { status, headers, body, release }
      const { where } = request
      if (isSuccess(status)) {
        const limits = { limitBytes: options.maxResponseBytes, buffers: options.buffers, share, where }
        try {
          return { status, headers, body: await decodeContent(body, coding, limits), release }
        } catch (error) {
          release()
          throw error
        } finally {
          options.buffers.give(body.buffer)
        }
      }
      release()
      // The body of an error is optional.
      const limits = { limitBytes: MAX_ERROR_BYTES, buffers: freshBuffers, share, where }
      const decoded = decodeContent(body, coding, limits)
      return { status, headers, body: await decoded.catch(() => new Uint8Array(0)), release }
    },
    async close() {
      const connections = await opened?.catch(() => null)
      await connections?.destroy()
    },
  }
}
