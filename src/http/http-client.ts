import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { codeOf, ExportError } from '../core/index.ts'
import { networkError } from './network-error.ts'
import { proxiesOf } from './proxies.ts'

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
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
  /** Decoded; valid until `release`. Of a response other than 2xx: its first 64 kB, empty when it cannot be read. */
  readonly body: Uint8Array
  /** Called when the body is read: later responses use its memory. */
  release(): void
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
  const memory = new BodyMemory(limits.connections)
  // Loaded with the first request: some runs send none, and undici is large.
  const open = async () => {
    const { openConnections } = await import('./connections.ts')
    return openConnections({
      connections: limits.connections,
      connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, limits.timeoutMs),
      proxyOf,
    })
  }
  return {
    /**
     * Sends one request, without redirects or retries. @param onWrite called when the connection is open
     * @param onHead called when the response begins
     * @returns null when `onWrite` returned false: nothing is sent
     * @throws ExportError `transient` (network, timeout, broken), `refused` (certificate), `data`, `interrupted`
     */
    async send(
      request: HttpRequest,
      onWrite: () => boolean,
      onHead: () => void = () => {},
    ): Promise<HttpResponse | null> {
      opened ??= open()
      const connections = await opened
      const exchange = new Exchange(request, limits, memory, { onWrite, onHead })
      const { method, url, headers, body } = request
      const path = url.pathname + url.search
      // The timer of the exchange covers both.
      const untimed = { headersTimeout: 0, bodyTimeout: 0 }
      connections.dispatch({ origin: url.origin, path, method, headers, body, ...untimed }, exchange)
      return exchange.response
    },
    async close(): Promise<void> {
      const connections = await opened?.catch(() => null)
      await connections?.destroy()
    },
  }
}

type Calls = { readonly onWrite: () => boolean; readonly onHead: () => void }
type Head = Pick<HttpResponse, 'status' | 'headers'>

/** One request and its response, by the dispatcher's own events: the moment of writing is known exactly. */
class Exchange implements Dispatcher.DispatchHandler {
  /** null: the request was withheld. */
  readonly response: Promise<HttpResponse | null>
  readonly #request: HttpRequest
  readonly #limits: HttpLimits
  readonly #memory: BodyMemory
  readonly #calls: Calls
  #settle!: {
    readonly resolve: (response: HttpResponse | null) => void
    readonly reject: (error: unknown) => void
  }
  #isSettled = false
  /** Null until the request is written. */
  #written: Dispatcher.DispatchController | null = null
  #head: Head | null = null
  #body: Body | null = null
  #stop: AbortSignal | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(request: HttpRequest, limits: HttpLimits, memory: BodyMemory, calls: Calls) {
    this.#request = request
    this.#limits = limits
    this.#memory = memory
    this.#calls = calls
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.#endBy(request.signal)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici may write again when a connection breaks. It must not, because of rate limit and budget.
    if (this.#written !== null) throw new Error('the connection broke')
    try {
      if (!this.#isSettled && !this.#calls.onWrite()) this.#end(() => this.#settle.resolve(null))
    } catch (error) {
      this.#end(() => this.#settle.reject(error))
    }
    // If this throws, nothing is written and the connection stays open.
    if (this.#isSettled) throw new Error('not to be written')
    this.#written = controller
    this.#restartTimer(this.#limits.timeoutMs)
    this.#endBy(this.#request.abort)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, given: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#calls.onHead()
    const headers = responseHeaders(given)
    const { timeoutMs, maxResponseBytes } = this.#limits
    const announced = Number(headers['content-length'] ?? 0)
    this.#head = { status, headers }
    if (!isSuccess(status)) {
      this.#body = new Body(NO_MEMORY, announced, MAX_ERROR_BYTES)
      this.#restartTimer(Math.min(timeoutMs, ERROR_BODY_TIMEOUT_MS))
    } else if (codingOf(headers) === null) this.#fail(unknownCoding(this.#request.where))
    else if (announced > maxResponseBytes) this.#fail(tooLarge(maxResponseBytes, this.#request.where))
    else this.#body = new Body(this.#memory, announced, maxResponseBytes)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#body?.add(chunk) === false)
      this.#breakOff(tooLarge(this.#limits.maxResponseBytes, this.#request.where))
  }

  onResponseEnd(): void {
    if (this.#head !== null && this.#body !== null) this.#complete(this.#head, this.#body)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#breakOff(networkError(error, this.#request, this.#limits.keys.address))
  }

  #complete({ status, headers }: Head, body: Body): void {
    const isGood = isSuccess(status)
    const respond = (bytes: Uint8Array, release = () => {}): void =>
      this.#settle.resolve({ status, headers, body: bytes, release })
    const bytes = body.take()
    this.#end(() => {
      if (codingOf(headers) === 'identity') respond(bytes, () => this.#memory.give(bytes))
      else if (!isGood && codingOf(headers) === null) respond(new Uint8Array(0))
      else
        unzipped(bytes, isGood ? this.#limits.maxResponseBytes : MAX_ERROR_BYTES, this.#request.where)
          .then((decoded) => respond(decoded))
          // The body of an error is optional.
          .catch((error: unknown) => (isGood ? this.#settle.reject(error) : respond(new Uint8Array(0))))
          .finally(() => this.#memory.give(bytes))
    })
  }

  /** The body is incomplete. For an error, the status is enough. */
  #breakOff(error: ExportError): void {
    const [head, body] = [this.#head, this.#body]
    if (head !== null && body !== null && !isSuccess(head.status)) this.#complete(head, body)
    this.#fail(error)
  }

  #fail(error: ExportError): void {
    this.#end(() => this.#settle.reject(error))
    // Later bytes are dropped.
    this.#body = null
    this.#written?.abort(error)
  }

  #end(settle: () => void): void {
    if (this.#isSettled) return
    this.#isSettled = true
    clearTimeout(this.#timer)
    this.#stop?.removeEventListener('abort', this.#onAbort)
    settle()
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

async function unzipped(body: Uint8Array, limitBytes: number, where: string): Promise<Uint8Array> {
  try {
    return await unzip(body, { maxOutputLength: limitBytes, chunkSize: CHUNK_BYTES })
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes, where)
    throw new ExportError({
      kind: 'transient',
      what: 'The compressed response is broken or truncated',
      where,
      next: 'Run again later: the export resumes where it stopped.',
    })
  }
}

/** Of the body; null: none that was requested. */
function codingOf(headers: ResponseHeaders): 'identity' | 'gzip' | null {
  const coding = (headers['content-encoding'] ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  return coding === 'gzip' || coding === 'x-gzip' ? 'gzip' : null
}

/** A body while it comes, at the beginning of its memory. */
class Body {
  readonly #memory: BodyMemory
  readonly #most: number
  #bytes: Uint8Array
  #length = 0

  /** @param announced its length; 0: not known @param most its greatest length */
  constructor(memory: BodyMemory, announced: number, most: number) {
    this.#memory = memory
    this.#most = most
    this.#bytes = memory.take(Math.min(announced || memory.usual, most))
  }

  /** @returns false when it is longer than it may be; what fits is kept */
  add(chunk: Uint8Array): boolean {
    const fitting = chunk.subarray(0, this.#most - this.#length)
    const length = this.#length + fitting.length
    if (length > this.#bytes.length) {
      const grown = this.#memory.take(Math.min(this.#most, 4 * length))
      grown.set(this.#bytes.subarray(0, this.#length))
      this.#memory.give(this.#bytes)
      this.#bytes = grown
    }
    this.#bytes.set(fitting, this.#length)
    this.#length = length
    return fitting.length === chunk.length
  }

  take(): Uint8Array {
    this.#memory.usual = Math.max(this.#memory.usual, this.#length)
    return this.#bytes.subarray(0, this.#length)
  }
}

/** Memory for bodies, used again: to allocate megabytes for each page makes V8 mark its whole heap every few pages. */
class BodyMemory {
  /** Bytes of the largest body so far. */
  usual = 64 * 1024
  readonly #free: Uint8Array[] = []
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  take(bytes: number): Uint8Array {
    const at = this.#free.findIndex(({ length }) => length >= bytes)
    if (at >= 0) return this.#free.splice(at, 1)[0]!
    // Smaller ones make room: responses have about the same length.
    this.#free.shift()
    return new Uint8Array(Math.ceil(bytes * HEADROOM))
  }

  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength <= MAX_KEPT_BYTES && this.#free.length < this.#most)
      this.#free.push(new Uint8Array(buffer))
  }
}

const NO_MEMORY = new BodyMemory(0)
/** For responses that are a little longer than the last one. */
const HEADROOM = 1.125
const MAX_KEPT_BYTES = 32 << 20

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
