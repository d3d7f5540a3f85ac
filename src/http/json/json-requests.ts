import { isUtf8 } from 'node:buffer'
import * as z from 'zod'
import { type Clock, type ErrorKind, ExportError, isExportError } from '../../core/index.ts'
import { hasTooManyValues } from '../../rows/index.ts'
import { type HttpClient, type HttpResponse, httpClient, interrupted, isSuccess } from '../http-client.ts'
import { backoffMs, retry, retryAfterMs } from '../retry.ts'
import { serverTexts } from '../server-texts.ts'
import type { Token, TokenSource } from './tokens.ts'

type JsonRequestsOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  /** Who responds, for messages: `The catalog`. */
  readonly server: string
  /** The setting with its address, for messages. */
  readonly key: string
}

export type JsonRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  readonly body?: object | URLSearchParams | null
  /** Statuses other than 2xx that the caller handles. */
  readonly expected?: readonly number[]
  /** Whether no other attempt follows one that fails. */
  readonly isOnce?: boolean
}

export type JsonResponse = {
  readonly status: number
  /** null: there is none, or the status is not 200. */
  readonly json: unknown
  /** The status and what the server says of it, for messages. */
  readonly text: string
}

const TIMEOUT_MS = 30_000
const RETRIES = 4
// If a server demands more, the next command has the time.
const MAX_WAIT_MS = 60_000
const MAX_RESPONSE_BYTES = 64 << 20

/** 419, 501: of servers that tell an expired token from a wrong one, or not from what they do not know. */
const OF_EXPIRED = new Set([401, 419, 501])
const OF_CREDENTIALS = new Set([401, 403, 419])
/** Not implemented, and no such version of HTTP: another attempt would have the same response. */
const FINAL = new Set([501, 505])

/** Small requests to a server beside the service: each until its response can be used, or no other attempt may help. */
export class JsonRequests {
  readonly #options: JsonRequestsOptions
  readonly #http: HttpClient

  /** @throws ExportError `config` when a proxy variable holds no address */
  constructor(options: JsonRequestsOptions) {
    this.#options = options
    this.#http = httpClient({
      connections: 1,
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: MAX_RESPONSE_BYTES,
      keys: { address: options.key, timeout: null },
    })
  }

  /** @throws ExportError `transient`, `credentials`, `refused`, `data`, `config`, `interrupted` */
  async send(request: JsonRequest, tokens: TokenSource | null): Promise<JsonResponse> {
    const { clock, stop, server } = this.#options
    const retries = request.isOnce === true ? 0 : RETRIES
    const where = `${request.method} ${request.url.origin}${request.url.pathname}`
    let isRenewed = false
    let demandedMs = 0
    const current = async () => tokens && (tokens.held() ?? (await tokens.current()))
    // The requests for it are repeated by themselves.
    let token = await current()
    const attempt = async (): Promise<JsonResponse> => {
      demandedMs = 0
      const response = await this.#exchange(request, where, token)
      const { status, headers } = response
      const text = `${server} responds with ${status}${wordsOf(response)}`
      const refusal = new ExportError({ ...this.#failure(status), what: text, where })
      if (tokens !== null && token !== null && !isRenewed && OF_EXPIRED.has(status)) {
        isRenewed = true
        try {
          await tokens.replace(token, refusal)
          token = await current()
          return attempt()
        } catch (error) {
          if (error !== refusal) throw error
        }
      }
      if (isSuccess(status) || request.expected?.includes(status) === true)
        return { status, json: status === 200 ? jsonBody(response.body, where) : null, text }
      demandedMs = retryAfterMs(headers, clock.now()) ?? 0
      throw refusal
    }
    const waitMs = (error: unknown, attempts: number): number | null => {
      const ms = Math.max(backoffMs(attempts - 1), demandedMs)
      return isExportError(error, 'transient') && attempts <= retries && ms <= MAX_WAIT_MS ? ms : null
    }
    return retry(attempt, { clock, signal: stop, waitMs }).catch((error) => {
      throw stop.aborted ? interrupted(where) : error
    })
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  async #exchange(
    { method, url, body = null }: JsonRequest,
    where: string,
    token: Token | null,
  ): Promise<HttpResponse> {
    const { stop } = this.#options
    const isForm = body instanceof URLSearchParams
    const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json'
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'spillway',
      ...(token === null ? {} : { authorization: token.header }),
      ...(body === null ? {} : { 'content-type': type }),
    }
    const text = body === null ? null : isForm ? body.toString() : JSON.stringify(body)
    const request = { method, url, headers, body: text, where, signal: stop, abort: stop }
    const response = await this.#http.send(request, () => true)
    if (response === null) throw interrupted(where)
    return response
  }

  #failure(status: number): { readonly kind: ErrorKind; readonly next: string } {
    const { key } = this.#options
    if (OF_CREDENTIALS.has(status))
      return {
        kind: 'credentials',
        next: `Check the variables that ${key} names, and the rights that they give.`,
      }
    if (status === 408 || status === 429 || (status >= 500 && !FINAL.has(status)))
      return { kind: 'transient', next: 'Run again later.' }
    return { kind: 'refused', next: `Correct ${key}, or what the response names.` }
  }
}

/** Of Iceberg (ErrorModel), and of OAuth2 (RFC 6749, 5.2). */
const Words = z.union([
  z
    .object({ error: z.object({ type: z.string().nullish(), message: z.string().nullish() }) })
    .transform(({ error }) => [error.type, error.message]),
  z
    .object({ error: z.string(), error_description: z.string().nullish() })
    .transform(({ error, error_description: description }) => [error, description]),
])

function wordsOf({ status, body }: HttpResponse): string {
  if (isSuccess(status)) return ''
  try {
    const words = Words.safeParse(jsonBody(body, '')).data ?? []
    const texts = words.map((word) => word ?? '')
    return serverTexts(texts, false)
      .map((text) => `: ${text}`)
      .join('')
  } catch {
    return ''
  }
}

// Tokens, reports and errors.
const MAX_BYTES = 16 << 20

/** The parser's error is not kept: it quotes the text. @throws ExportError `transient`: no JSON, `data`: too large */
export function jsonBody(body: Uint8Array, where: string): unknown {
  const isLarge = body.byteLength > MAX_BYTES
  if (isLarge || hasTooManyValues(body)) {
    const excess = isLarge
      ? `is larger than ${MAX_BYTES} bytes`
      : 'holds more values than any response of this kind'
    const next = 'Check the address. If the error persists, report it to the service.'
    throw new ExportError({ kind: 'data', what: `The response ${excess}`, where, next })
  }
  if (!isUtf8(body)) throw brokenResponse('The response is no UTF-8', where)
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw brokenResponse('The response is no JSON', where)
  }
}

function brokenResponse(what: string, where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what,
    where,
    next: 'Run again later. If the error persists, check the address.',
  })
}
