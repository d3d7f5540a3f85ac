import { type BufferPool, freshBuffers } from '../core/index.ts'
import type { Connections } from './connections.ts'
import { gunzipped } from './content-coding.ts'
import {
  CONNECT_TIMEOUT_MS,
  exchange,
  type HttpLimits,
  type HttpRequest,
  isSuccess,
  MAX_ERROR_BYTES,
  type ResponseHeaders,
} from './exchange.ts'
import { proxiesOf } from './proxies.ts'

export type HttpResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  /** Decoded. Of a response other than 2xx: its first 64 kB, empty when it cannot be read. */
  readonly body: Uint8Array
}

export type HttpClient = ReturnType<typeof httpClient>

/** @throws ExportError `config` when a proxy variable holds no address */
export function httpClient(options: HttpLimits & { readonly connections: number }) {
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
  /** Bytes of the largest usable response so far. */
  let usualBytes = 0
  return {
    /**
     * Sends one request and receives the complete response, whatever its status. No redirects, no retries.
     * @param onWrite called when the connection is open, just before the request is written. If it returns false, or
     *   throws, nothing is sent
     * @returns null when `onWrite` returned false
     * @throws ExportError `transient` (network, timeout, broken response), `refused` (certificate), `data`
     *   (too large, unknown coding), `interrupted`
     */
    async send(request: HttpRequest, onWrite: () => boolean): Promise<HttpResponse | null> {
      opened ??= open()
      const connections = await opened
      const response = await exchange(connections, request, { ...options, usualBytes }, onWrite)
      if (response === null) return null
      const { status, headers, coding, body } = response
      if (coding === 'identity') {
        if (isSuccess(status)) usualBytes = Math.max(usualBytes, body.byteLength)
        return { status, headers, body }
      }
      const gunzip = (limitBytes: number, buffers: BufferPool): Promise<Uint8Array> =>
        gunzipped(body, { limitBytes, buffers, where: request.where })
      if (isSuccess(status)) {
        try {
          return { status, headers, body: await gunzip(options.maxResponseBytes, options.buffers) }
        } finally {
          options.buffers.give(body.buffer)
        }
      }
      // The body of an error is optional.
      const decoded = coding === 'gzip' ? await gunzip(MAX_ERROR_BYTES, freshBuffers).catch(() => null) : null
      return { status, headers, body: decoded ?? new Uint8Array(0) }
    },
    async close(): Promise<void> {
      const connections = await opened?.catch(() => null)
      await connections?.destroy()
    },
  }
}
