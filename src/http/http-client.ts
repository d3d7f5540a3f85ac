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
  /** The header of that name; null: none. */
  readonly authorization: string | null
  /** A form, or what is sent as JSON. */
  readonly body: URLSearchParams | object | null
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
  /** Of the server's address, such as `service.base_url`, and of the timeout; null: it cannot be set. */
  readonly keys: { readonly address: string; readonly timeout: string | null }
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
      const { handler, response } = exchange(request, limits, memory, { onWrite, onHead })
      const { method, url } = request
      const sent = { origin: url.origin, path: url.pathname + url.search, method, ...headersAndBody(request) }
      // The timer of the exchange covers both.
      connections.dispatch({ ...sent, headersTimeout: 0, bodyTimeout: 0 }, handler)
      return response
    },
    async close(): Promise<void> {
      const connections = await opened?.catch(() => null)
      await connections?.destroy()
    },
  }
}

function headersAndBody({ authorization, body }: HttpRequest) {
  const isForm = body instanceof URLSearchParams
  const headers = {
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'user-agent': 'spillway',
    ...(authorization !== null && { authorization }),
    ...(body !== null && {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
    }),
  }
  return { headers, body: body === null ? null : isForm ? body.toString() : JSON.stringify(body) }
}

type Calls = { readonly onWrite: () => boolean; readonly onHead: () => void }
type Head = Pick<HttpResponse, 'status' | 'headers'>

/** One request and its response, by the dispatcher's own events: the moment of writing is known exactly. */
function exchange(request: HttpRequest, limits: HttpLimits, memory: BodyMemory, calls: Calls) {
  const { where } = request
  const { timeoutMs, maxResponseBytes } = limits
  let resolve: (response: HttpResponse | null) => void
  let reject: (error: unknown) => void
  /** null: the request was withheld. */
  const response = new Promise<HttpResponse | null>((onResponse, onError) => {
    resolve = onResponse
    reject = onError
  })
  let isSettled = false
  /** Null until the request is written. */
  let written: Dispatcher.DispatchController | null = null
  let head: Head | null = null
  let body: Body | null = null
  let stop: AbortSignal | null = null
  let timer: NodeJS.Timeout | undefined

  function end(settle: () => void): void {
    if (isSettled) return
    isSettled = true
    clearTimeout(timer)
    stop?.removeEventListener('abort', onAbort)
    settle()
  }

  function fail(error: ExportError): void {
    end(() => reject(error))
    // Later bytes are dropped.
    body = null
    written?.abort(error)
  }

  /** The body is incomplete. For an error, the status is enough. */
  function breakOff(error: ExportError): void {
    if (head !== null && body !== null && !isSuccess(head.status)) complete(head, body)
    fail(error)
  }

  function complete({ status, headers }: Head, received: Body): void {
    const isGood = isSuccess(status)
    const respond = (body: Uint8Array, release = () => {}): void =>
      resolve({ status, headers, body, release })
    const bytes = received.take()
    end(() => {
      if (codingOf(headers) === 'identity') respond(bytes, () => memory.give(bytes))
      else if (!isGood && codingOf(headers) === null) respond(new Uint8Array(0))
      else
        unzipped(bytes, isGood ? maxResponseBytes : MAX_ERROR_BYTES, where)
          .then((decoded) => respond(decoded))
          // The body of an error is optional.
          .catch((error: unknown) => (isGood ? reject(error) : respond(new Uint8Array(0))))
          .finally(() => memory.give(bytes))
    })
  }

  function onAbort(): void {
    fail(interrupted(where))
  }

  /** From now on this signal aborts the request. */
  function endBy(signal: AbortSignal): void {
    stop?.removeEventListener('abort', onAbort)
    stop = signal
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  }

  function onTimeout(): void {
    const what = `No complete response came within ${timeoutMs / 1000} s`
    const { timeout } = limits.keys
    const next = timeout === null ? 'Run again later.' : `Run again later, or raise ${timeout}.`
    breakOff(new ResponseTimeout({ kind: 'transient', what, where, next }))
  }

  function restartTimer(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(onTimeout, ms)
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      // undici may write again when a connection breaks. It must not, because of rate limit and budget.
      if (written !== null) throw new Error('the connection broke')
      try {
        if (!isSettled && !calls.onWrite()) end(() => resolve(null))
      } catch (error) {
        end(() => reject(error))
      }
      // If this throws, nothing is written and the connection stays open.
      if (isSettled) throw new Error('not to be written')
      written = controller
      restartTimer(timeoutMs)
      endBy(request.abort)
    },
    onResponseStart(_, status, given) {
      if (status < 200) return
      calls.onHead()
      const headers = responseHeaders(given)
      const announced = Number(headers['content-length'] ?? 0)
      head = { status, headers }
      if (!isSuccess(status)) {
        body = new Body(NO_MEMORY, announced, MAX_ERROR_BYTES)
        restartTimer(Math.min(timeoutMs, ERROR_BODY_TIMEOUT_MS))
      } else if (codingOf(headers) === null) fail(unknownCoding(where))
      else if (announced > maxResponseBytes) fail(tooLarge(maxResponseBytes, where))
      else body = new Body(memory, announced, maxResponseBytes)
    },
    onResponseData(_, chunk) {
      if (body?.add(chunk) === false) breakOff(tooLarge(maxResponseBytes, where))
    },
    onResponseEnd() {
      if (head !== null && body !== null) complete(head, body)
    },
    onResponseError(_, error) {
      breakOff(networkError(error, request, limits.keys.address))
    },
  }
  endBy(request.signal)
  return { handler, response }
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
