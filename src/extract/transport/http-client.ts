import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { type BufferPool, ExportError, freshBuffers } from '../../core/index.ts'
import type { Connections } from './connections.ts'
import {
  type ContentCoding,
  contentCoding,
  decodeContent,
  tooLarge,
  unknownCoding,
} from './content-coding.ts'
import { networkError } from './network-error.ts'
import { proxiesOf } from './proxies.ts'
import {
  type BodyBuffer,
  bodyBuffer,
  type ResponseMemory,
  type RoomShare,
  responseMemory,
} from './response-memory.ts'

type HttpRequest = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** Names the request in messages. */
  readonly where: string
  /** Aborts this request; null: only the signals of the client do. */
  readonly abort: AbortSignal | null
}

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
   * @param onWrite called when the connection is open, just before the request is written. If it throws, nothing is
   *   sent, and `send` throws the same
   * @throws ExportError `transient` (network, timeout, broken response), `refused` (certificate), `data`
   *   (too large, unknown coding), `interrupted`
   */
  send(request: HttpRequest, onWrite: () => void): Promise<HttpResponse>
  close(): Promise<void>
}

/** The request was written, and no complete response came in time. */
export class ResponseTimeout extends ExportError {}

type HttpOptions = {
  readonly connections: number
  /** From the moment the request is written to the last byte of the response. */
  readonly timeoutMs: number
  /** Limit for the bytes on the wire and for the decoded ones. */
  readonly maxResponseBytes: number
  readonly buffers: BufferPool
  /** Aborts requests that are not written yet. */
  readonly stop: AbortSignal
  /** Aborts all requests. */
  readonly abort: AbortSignal
}

const CONNECT_TIMEOUT_MS = 10_000
const MAX_ERROR_BYTES = 64 * 1024
// The body of an error is worth a short wait only: a 429 has to stop all requests at once.
const ERROR_BODY_TIMEOUT_MS = 2_000

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
      const { status, headers, coding, body, share } = await exchange(
        connections,
        request,
        { ...options, room },
        onWrite,
      )
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

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

export function interrupted(where: string): ExportError {
  return new ExportError('interrupted', 'The run was stopped', where, 'Run again to resume from here.')
}

type RawResponse = Omit<HttpResponse, 'body' | 'release'> & {
  readonly share: RoomShare
  readonly coding: ContentCoding
  readonly body: Uint8Array
}

/**
 * One request and its response, by the dispatcher's own events: the body goes from the socket's reads directly into its
 * buffer, and the moment of writing is known exactly.
 */
function exchange(
  connections: Connections,
  request: HttpRequest,
  {
    timeoutMs,
    maxResponseBytes,
    buffers,
    stop,
    abort,
    room,
  }: HttpOptions & { readonly room: ResponseMemory },
  onWrite: () => void,
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    let written: Dispatcher.DispatchController | null = null
    let head: Omit<RawResponse, 'body'> | null = null
    let body: BodyBuffer | null = null
    let settled = false
    const share = room.share()
    let received = 0
    let deadline = 0

    // Before it is written, a request may wait for a connection as long as earlier requests may take.
    let timer = setTimeout(onTimeout, CONNECT_TIMEOUT_MS + timeoutMs)
    stop.addEventListener('abort', onStop)
    abort.addEventListener('abort', onStop)
    request.abort?.addEventListener('abort', onStop)
    if (stop.aborted || abort.aborted || request.abort?.aborted) return onStop()

    const { method, url, headers } = request
    connections.dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers,
        body: request.body,
        // The timer above also covers a missing response.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(controller) {
          // If this throws, nothing is written and the connection stays open.
          if (settled) throw new Error('aborted before it was written')
          // The dispatcher may write again when a connection breaks. It must not, because of rate limit and budget.
          if (written !== null) throw new Error('the connection broke')
          try {
            onWrite()
          } catch (error) {
            fail(error instanceof Error ? error : new Error(String(error)))
            throw error
          }
          written = controller
          restartTimer(timeoutMs)
          stop.removeEventListener('abort', onStop)
        },
        onResponseStart(_controller, status, responseHeaders) {
          if (status < 200) return
          const coding = contentCoding(String(responseHeaders['content-encoding'] ?? ''))
          head = { status, headers: responseHeaders, coding, share }
          const announced = announcedBytes(responseHeaders)
          if (!isSuccess(status)) {
            body = bodyBuffer(announced, MAX_ERROR_BYTES, freshBuffers)
            restartTimer(Math.min(timeoutMs, ERROR_BODY_TIMEOUT_MS))
          } else if (coding === 'unknown') {
            fail(unknownCoding(request.where))
          } else if (announced !== null && announced > maxResponseBytes) {
            fail(tooLarge(maxResponseBytes, request.where))
          } else {
            body = bodyBuffer(announced, maxResponseBytes, buffers)
          }
        },
        onResponseData(controller, chunk) {
          received += chunk.length
          if (body === null || share.has(received)) return take(chunk)
          // The wait for memory does not count as a timeout, but it is bounded.
          const leftMs = deadline - performance.now()
          const kept = Buffer.from(chunk)
          controller.pause()
          restartTimer(timeoutMs)
          const goOn = (): void => {
            if (settled) return
            restartTimer(leftMs)
            take(kept)
            controller.resume()
          }
          // Deferred: memory is returned while undici parses another response, and it parses one at a time.
          share.wait(received, () => queueMicrotask(goOn))
        },
        onResponseEnd() {
          if (head !== null && body !== null) complete(head, body)
        },
        onResponseError(_controller, error) {
          breakOff(networkError(error, request))
        },
      },
    )

    function take(chunk: Uint8Array): void {
      if (body?.add(chunk) === false) breakOff(tooLarge(maxResponseBytes, request.where))
    }

    function complete(responseHead: Omit<RawResponse, 'body'>, responseBody: BodyBuffer): void {
      if (settle()) resolve({ ...responseHead, body: responseBody.take() })
    }

    function fail(error: Error): void {
      if (settle()) {
        // Later bytes are dropped.
        if (body !== null) buffers.give(body.take().buffer)
        body = null
        share.release()
        reject(error)
      }
      written?.abort(error)
    }

    /** The body is incomplete. For an error, the status is enough. */
    function breakOff(error: Error): void {
      if (head !== null && body !== null && !isSuccess(head.status)) complete(head, body)
      fail(error)
    }

    /** @returns false when the request is settled already */
    function settle(): boolean {
      if (settled) return false
      settled = true
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
      abort.removeEventListener('abort', onStop)
      request.abort?.removeEventListener('abort', onStop)
      return true
    }

    function restartTimer(ms: number): void {
      clearTimeout(timer)
      deadline = performance.now() + ms
      timer = setTimeout(onTimeout, ms)
    }

    function onTimeout(): void {
      const what = `No complete response came within ${timeoutMs / 1000} s`
      const next = 'Run again later, or raise service.timeout.'
      const error = written === null ? ExportError : ResponseTimeout
      breakOff(new error('transient', what, request.where, next))
    }

    function onStop(): void {
      fail(interrupted(request.where))
    }
  })
}

function announcedBytes(headers: IncomingHttpHeaders): number | null {
  const length = headers['content-length']
  return length !== undefined && /^\d+$/.test(length) ? Number(length) : null
}
