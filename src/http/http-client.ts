import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { codeOf, ExportError, isExportError } from '../core/index.ts'
import { networkError } from './network-error.ts'
import { proxiesOf } from './proxies.ts'

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

type HttpLimits = {
  /** The maximum number of connections to each host. */
  readonly connections: number
  /** From the moment the request is written to the last byte of the response. */
  readonly timeoutMs: number
  /** Limit for the bytes on the wire and for the decoded ones. */
  readonly maxResponseBytes: number
  /** The settings that messages name. */
  readonly keys: SettingKeys
}

type SettingKeys = {
  /** Of the server's address: `service.base_url`. */
  readonly address: string
  /** Of the timeout; null: it cannot be set. */
  readonly timeout: string | null
}

/** By name in small letters. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>

export type HttpResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  /** Decoded. Of a response other than 2xx: its first 64 kB, empty when it cannot be read. */
  readonly body: Uint8Array
}

export type HttpClient = ReturnType<typeof httpClient>

/** The request was written, and no complete response came in time. */
export class ResponseTimeout extends ExportError {}

const CONNECT_TIMEOUT_MS = 10_000
const MAX_ERROR_BYTES = 64 * 1024
// The body of an error is worth a short wait only: a 429 has to stop all requests at once.
const ERROR_BODY_TIMEOUT_MS = 2_000

/** @throws ExportError `config` when a proxy variable holds no address */
export function httpClient(limits: HttpLimits) {
  // Read here, so that a wrong variable is reported before anything is sent.
  const proxyOf = proxiesOf(process.env)
  type Opened = Awaited<ReturnType<typeof open>>
  let opened: Promise<Opened> | null = null
  // Loaded with the first request: some runs send none, and undici is large.
  const open = async () => {
    const { openConnections } = await import('./connections.ts')
    return openConnections({
      connections: limits.connections,
      connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, limits.timeoutMs),
      maxResponseBytes: limits.maxResponseBytes,
      proxyOf,
    })
  }
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
      const exchange = new Exchange(request, limits, onWrite)
      try {
        const { method, url, headers, body } = request
        const sent = connections(url.origin, () => exchange.write()).request({
          origin: url.origin,
          path: url.pathname + url.search,
          method,
          headers,
          body,
          signal: exchange.signal,
          // The timer of the exchange covers both.
          headersTimeout: 0,
          bodyTimeout: 0,
        })
        return await exchange.receive(await sent)
      } catch (error) {
        if (exchange.isWithheld) return null
        throw exchange.failure(error)
      } finally {
        exchange.end()
      }
    },
    async close(): Promise<void> {
      const connections = await opened?.catch(() => null)
      await connections?.destroy()
    },
  }
}

/** One request and its response, from the wait for a connection to the last byte. */
class Exchange {
  isWithheld = false
  readonly #request: HttpRequest
  readonly #limits: HttpLimits
  readonly #onWrite: () => boolean
  readonly #controller = new AbortController()
  /** What ended it, other than undici. */
  #cause: { readonly error: unknown } | null = null
  #isWritten = false
  #stop: AbortSignal | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(request: HttpRequest, limits: HttpLimits, onWrite: () => boolean) {
    this.#request = request
    this.#limits = limits
    this.#onWrite = onWrite
    this.#endBy(request.signal)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Called just before the request is written. If it throws, nothing is, and the connection stays open. */
  write(): void {
    // undici may write again when a connection breaks. It must not, because of rate limit and budget.
    if (this.#isWritten) throw new Error('the connection broke')
    this.signal.throwIfAborted()
    try {
      this.isWithheld = !this.#onWrite()
    } catch (error) {
      this.#cause = { error }
    }
    if (this.isWithheld || this.#cause !== null) throw new Error('not to be written')
    this.#isWritten = true
    this.#restartTimer(this.#limits.timeoutMs)
    this.#endBy(this.#request.abort)
  }

  async receive({
    statusCode: status,
    headers: given,
    body,
  }: Dispatcher.ResponseData): Promise<HttpResponse> {
    const headers = responseHeaders(given)
    const coding = (headers['content-encoding'] ?? '').trim().toLowerCase()
    const isGzip = coding === 'gzip' || coding === 'x-gzip'
    const isPlain = coding === '' || coding === 'identity'
    if (isSuccess(status)) {
      if (!isGzip && !isPlain) {
        body.on('error', () => {}).destroy()
        throw unknownCoding(this.#request.where)
      }
      const bytes = await body.bytes()
      return { status, headers, body: isGzip ? await this.#gunzipped(bytes) : bytes }
    }
    // The status of an error is enough, its body is optional.
    this.#restartTimer(Math.min(this.#limits.timeoutMs, ERROR_BODY_TIMEOUT_MS))
    const start = await beginningOf(body)
    if (this.#request.abort.aborted) throw interrupted(this.#request.where)
    const decoded = isGzip
      ? await unzip(start, { maxOutputLength: MAX_ERROR_BYTES }).catch(() => null)
      : isPlain
        ? start
        : null
    return { status, headers, body: decoded ?? new Uint8Array(0) }
  }

  failure(error: unknown): unknown {
    if (this.#cause !== null) return this.#cause.error
    if (isExportError(error)) return error
    const { where } = this.#request
    const code = codeOf(error)
    if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return tooLarge(this.#limits.maxResponseBytes, where)
    return networkError(error as Error, this.#request, this.#limits.keys.address)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#stop?.removeEventListener('abort', this.#onAbort)
  }

  async #gunzipped(body: Uint8Array): Promise<Uint8Array> {
    const { maxResponseBytes } = this.#limits
    const { where } = this.#request
    try {
      return await unzip(body, { maxOutputLength: maxResponseBytes, chunkSize: CHUNK_BYTES })
    } catch (error) {
      if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxResponseBytes, where)
      throw new ExportError({
        kind: 'transient',
        what: 'The compressed response is broken or truncated',
        where,
        next: 'Run again later: the export resumes where it stopped.',
      })
    }
  }

  readonly #onTimeout = (): void => {
    const what = `No complete response came within ${this.#limits.timeoutMs / 1000} s`
    const { timeout } = this.#limits.keys
    const next = timeout === null ? 'Run again later.' : `Run again later, or raise ${timeout}.`
    this.#abort(new ResponseTimeout({ kind: 'transient', what, where: this.#request.where, next }))
  }

  readonly #onAbort = (): void => {
    this.#abort(interrupted(this.#request.where))
  }

  #abort(error: ExportError): void {
    this.#cause ??= { error }
    this.#controller.abort(error)
  }

  #restartTimer(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onTimeout, ms)
  }

  /** From now on this signal aborts the request. */
  #endBy(signal: AbortSignal): void {
    this.#stop?.removeEventListener('abort', this.#onAbort)
    this.#stop = signal
    signal.addEventListener('abort', this.#onAbort)
    if (signal.aborted) this.#onAbort()
  }
}

const unzip = promisify(gunzip)
// Each chunk takes one task of the thread pool: the default of 16 kB would make hundreds of tasks for a page.
const CHUNK_BYTES = 256 * 1024

/** As many bytes as come, at most {@link MAX_ERROR_BYTES}. */
async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      parts.push(chunk)
      length += chunk.byteLength
      if (length >= MAX_ERROR_BYTES) break
    }
  } catch {
    // What came is enough.
  }
  return Buffer.concat(parts).subarray(0, MAX_ERROR_BYTES)
}

/** Of a header that comes twice the first counts. */
function responseHeaders(given: IncomingHttpHeaders): ResponseHeaders {
  const headers: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(given)) headers[name] = Array.isArray(value) ? value[0] : value
  return headers
}

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

function tooLarge(limitBytes: number, where: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: `The response is larger than the ${limitBytes} bytes allowed`,
    where,
    next: 'Lower extract.page_size, or raise service.max_response_bytes.',
  })
}

function unknownCoding(where: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: 'The response has a compression that was not requested',
    where,
    next: 'Look for a proxy that changes Content-Encoding; gzip and identity are supported.',
  })
}
