import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { type BufferPool, ExportError, freshBuffers } from '../core/index.ts'
import { type BodyBuffer, bodyBuffer } from './body-buffer.ts'
import type { Connections } from './connections.ts'
import { type ContentCoding, contentCoding, tooLarge, unknownCoding } from './content-coding.ts'
import { networkError } from './network-error.ts'

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** null: none. */
  readonly body: string | null
  /** Names the request in messages. */
  readonly where: string
} & RequestSignals

export type RequestSignals = {
  /** Aborts the request until it is written. It aborts with `abort`, too. */
  readonly signal: AbortSignal
  /** Aborts the request, written or not. */
  readonly abort: AbortSignal
}

export type HttpLimits = {
  /** From the moment the request is written to the last byte of the response. */
  readonly timeoutMs: number
  /** Limit for the bytes on the wire and for the decoded ones. */
  readonly maxResponseBytes: number
  readonly buffers: BufferPool
  /** The settings that messages name. */
  readonly keys: SettingKeys
}

type ExchangeLimits = HttpLimits & {
  /** Room for a response that does not announce its length. */
  readonly usualBytes: number
}

type SettingKeys = {
  /** Of the server's address: `service.base_url`. */
  readonly address: string
  /** Of the timeout; null: it cannot be set. */
  readonly timeout: string | null
}

/** By name in small letters. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>

/** Of a header that comes twice the first counts. */
function responseHeaders(given: IncomingHttpHeaders): ResponseHeaders {
  const headers: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(given)) headers[name] = Array.isArray(value) ? value[0] : value
  return headers
}

/** A response whose body is not decoded. */
type RawResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly coding: ContentCoding
  readonly body: Uint8Array
}

/** The request was written, and no complete response came in time. */
export class ResponseTimeout extends ExportError {}

export const CONNECT_TIMEOUT_MS = 10_000
export const MAX_ERROR_BYTES = 64 * 1024
// The body of an error is worth a short wait only: a 429 has to stop all requests at once.
const ERROR_BODY_TIMEOUT_MS = 2_000

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

export function interrupted(where: string): ExportError {
  return new ExportError({
    kind: 'interrupted',
    what: 'The run was stopped',
    where,
    next: 'Run again to resume from here.',
  })
}

/**
 * Sends one request and receives its response, by the dispatcher's own events: the body goes from the socket's reads
 * directly into its buffer, and the moment of writing is known exactly.
 * @param onWrite called just before the request is written. If it returns false, or throws, nothing is sent
 * @returns null when `onWrite` returned false
 * @throws ExportError as `HttpClient.send` does, except of decoding
 */
export function exchange(
  connections: Connections,
  request: HttpRequest,
  limits: ExchangeLimits,
  onWrite: () => boolean,
): Promise<RawResponse | null> {
  return new Promise((resolve, reject) => {
    const each = new Exchange(request, limits, { onWrite, resolve, reject })
    // The wait for a connection ends with the connector's own timeout, and with those of the requests before.
    if (!each.begin()) return
    const { method, url, headers, body } = request
    connections.dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers,
        body,
        // The timer of the exchange also covers a missing response.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      each,
    )
  })
}

type ExchangeEvents = {
  onWrite(): boolean
  resolve(response: RawResponse | null): void
  reject(error: Error): void
}

/** One request and its response, from the wait for a connection to the last byte. It settles once. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #limits: ExchangeLimits
  readonly #events: ExchangeEvents
  /** Null until the request is written. */
  #written: Dispatcher.DispatchController | null = null
  #head: Omit<RawResponse, 'body'> | null = null
  #body: BodyBuffer | null = null
  #isSettled = false
  #signal: AbortSignal | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(request: HttpRequest, limits: ExchangeLimits, events: ExchangeEvents) {
    this.#request = request
    this.#limits = limits
    this.#events = events
  }

  /** @returns false when the request is aborted already */
  begin(): boolean {
    this.#endBy(this.#request.signal)
    return !this.#isSettled
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // If this throws, nothing is written and the connection stays open.
    if (this.#isSettled) throw new Error('ended before it was written')
    // The dispatcher may write again when a connection breaks. It must not, because of rate limit and budget.
    if (this.#written !== null) throw new Error('the connection broke')
    try {
      if (!this.#events.onWrite()) this.#withhold()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
    if (this.#isSettled) throw new Error('not to be written')
    this.#written = controller
    this.#restartTimer(this.#limits.timeoutMs)
    this.#endBy(this.#request.abort)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, given: IncomingHttpHeaders): void {
    if (status < 200) return
    const headers = responseHeaders(given)
    const { timeoutMs, maxResponseBytes, usualBytes, buffers } = this.#limits
    const { where } = this.#request
    const coding = contentCoding(headers['content-encoding'] ?? '')
    this.#head = { status, headers, coding }
    const announced = announcedBytes(headers)
    if (!isSuccess(status)) {
      this.#body = bodyBuffer(announced ?? 0, MAX_ERROR_BYTES, freshBuffers)
      this.#restartTimer(Math.min(timeoutMs, ERROR_BODY_TIMEOUT_MS))
    } else if (coding === 'unknown') {
      this.#fail(unknownCoding(where))
    } else if (announced !== null && announced > maxResponseBytes) {
      this.#fail(tooLarge(maxResponseBytes, where))
    } else {
      this.#body = bodyBuffer(announced ?? usualBytes, maxResponseBytes, buffers)
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#body?.add(chunk) !== false) return
    this.#breakOff(tooLarge(this.#limits.maxResponseBytes, this.#request.where))
  }

  onResponseEnd(): void {
    if (this.#head !== null && this.#body !== null) this.#complete(this.#head, this.#body)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#breakOff(networkError(error, this.#request, this.#limits.keys.address))
  }

  readonly #onTimeout = (): void => {
    const what = `No complete response came within ${this.#limits.timeoutMs / 1000} s`
    const { timeout } = this.#limits.keys
    const next = timeout === null ? 'Run again later.' : `Run again later, or raise ${timeout}.`
    this.#breakOff(new ResponseTimeout({ kind: 'transient', what, where: this.#request.where, next }))
  }

  readonly #onAbort = (): void => {
    this.#fail(interrupted(this.#request.where))
  }

  #complete(head: Omit<RawResponse, 'body'>, body: BodyBuffer): void {
    if (this.#settle()) this.#events.resolve({ ...head, body: body.take() })
  }

  #withhold(): void {
    if (this.#settle()) this.#events.resolve(null)
  }

  /** The body is incomplete. For an error, the status is enough. */
  #breakOff(error: Error): void {
    const [head, body] = [this.#head, this.#body]
    if (head !== null && body !== null && !isSuccess(head.status)) this.#complete(head, body)
    this.#fail(error)
  }

  #fail(error: Error): void {
    if (this.#settle()) {
      // Later bytes are dropped.
      if (this.#body !== null) this.#limits.buffers.give(this.#body.take().buffer)
      this.#body = null
      this.#events.reject(error)
    }
    this.#written?.abort(error)
  }

  /** @returns false when the exchange is settled already */
  #settle(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    return true
  }

  #restartTimer(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onTimeout, ms)
  }

  /** From now on this signal aborts the request. */
  #endBy(signal: AbortSignal): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort)
    if (signal.aborted) this.#onAbort()
  }
}

function announcedBytes(headers: ResponseHeaders): number | null {
  const length = headers['content-length']
  return length !== undefined && /^\d+$/.test(length) ? Number(length) : null
}
