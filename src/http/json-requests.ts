import { isUtf8 } from 'node:buffer'
import * as z from 'zod'
import {
  type Clock,
  type ErrorKind,
  ExportError,
  hasTooManyValues,
  isExportError,
  isHeaderText,
  LEFT_OUT,
  oneLine,
  repeatsSecret,
} from '../core/index.ts'
import { type HttpRequest, type HttpResponse, httpClient, interrupted, isSuccess } from './http-client.ts'
import { backoffMs, retry, retryAfterMs } from './retry.ts'
import { newToken, type TokenSource, tokenSource } from './tokens.ts'

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
  readonly body?: HttpRequest['body']
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

export type JsonRequests = ReturnType<typeof jsonRequests>

const RETRIES = 4
// If a server demands more, the next command has the time.
const MAX_WAIT_MS = 60_000

/** 419, 501: of servers that tell an expired token from a wrong one, or not from what they do not know. */
const OF_EXPIRED = new Set([401, 419, 501])
const OF_CREDENTIALS = new Set([401, 403, 419])
/** Not implemented, and no such version of HTTP: another attempt would have the same response. */
const FINAL = new Set([501, 505])

/**
 * Small requests to a server beside the service: each until its response can be used, or no other attempt may help.
 * @throws ExportError `config` when a proxy variable holds no address
 */
export function jsonRequests({ clock, stop, server, key }: JsonRequestsOptions) {
  const keys = { address: key, timeout: null }
  const http = httpClient({ connections: 1, timeoutMs: 30_000, maxResponseBytes: 64 << 20, keys })

  function failureOf(status: number): { readonly kind: ErrorKind; readonly next: string } {
    if (OF_CREDENTIALS.has(status)) {
      const next = `Check the variables that ${key} names, and the rights that they give.`
      return { kind: 'credentials', next }
    }
    if (status === 408 || status === 429 || (status >= 500 && !FINAL.has(status)))
      return { kind: 'transient', next: 'Run again later.' }
    return { kind: 'refused', next: `Correct ${key}, or what the response names.` }
  }

  return {
    /** @throws ExportError `transient`, `credentials`, `refused`, `data`, `config`, `interrupted` */
    async send(request: JsonRequest, tokens: TokenSource | null): Promise<JsonResponse> {
      const { method, url, body = null, expected, isOnce = false } = request
      const where = `${method} ${url.origin}${url.pathname}`
      const given = { method, url, body, where, signal: stop, abort: stop }
      let isRenewed = false
      let demandedMs = 0
      // The requests for it are repeated by themselves.
      let token = tokens && (await tokens.current())
      const attempt = async (): Promise<JsonResponse> => {
        demandedMs = 0
        // It is null if the request is withheld.
        const response = (await http.send({ ...given, authorization: token?.header ?? null }, () => true))!
        const { status, headers } = response
        if (tokens !== null && token !== null && !isRenewed && OF_EXPIRED.has(status)) {
          isRenewed = true
          if (await tokens.replace(token)) {
            token = await tokens.current()
            return attempt()
          }
        }
        const text = `${server} responds with ${status}${wordsOf(response)}`
        if (isSuccess(status) || expected?.includes(status))
          return { status, json: status === 200 ? jsonBody(response.body, where, 'data') : null, text }
        demandedMs = retryAfterMs(headers, clock.now()) ?? 0
        throw new ExportError({ ...failureOf(status), what: text, where })
      }
      const waitMs = (error: unknown, attempts: number): number | null => {
        const ms = Math.max(backoffMs(attempts - 1), demandedMs)
        const mayRepeat = !isOnce && attempts <= RETRIES && ms <= MAX_WAIT_MS
        return mayRepeat && isExportError(error, 'transient') ? ms : null
      }
      return retry(attempt, { clock, signal: stop, waitMs }).catch((error) => {
        throw stop.aborted ? interrupted(where) : error
      })
    },
    close: () => http.close(),
  }
}

type ClientCredentials = {
  readonly tokenUrl: string
  /** null: the server's default. */
  readonly scope: string | null
  readonly clientId: () => Promise<string>
  readonly clientSecret: () => Promise<string>
}

const Issued = z.object({
  access_token: z.string().refine(isHeaderText),
  // It only spares a request that would be refused.
  expires_in: z.coerce.number().positive().nullish().catch(null),
})

/** Tokens by OAuth2 client credentials, which are sent in the form. Source: RFC 6749, 4.4 and 2.3.1. */
export function clientCredentials(
  { tokenUrl, scope, clientId, clientSecret }: ClientCredentials,
  requests: JsonRequests,
  clock: Clock,
): TokenSource {
  const url = new URL(tokenUrl)
  return tokenSource(clock, async () => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: await clientId(),
      client_secret: await clientSecret(),
      ...(scope !== null && { scope }),
    })
    const { status, json, text } = await requests.send({ method: 'POST', url, body, expected: [400] }, null)
    const issued = Issued.safeParse(json)
    if (!issued.success) {
      throw new ExportError({
        kind: status === 400 ? 'credentials' : 'data',
        what: status === 400 ? text : 'The response holds no access_token that can be sent as a header',
        where: `POST ${url.origin}${url.pathname}`,
        next: 'Check the address of the token, and client id, secret and scope.',
      })
    }
    const { access_token: secret, expires_in: seconds } = issued.data
    // Early enough for a response to arrive while it is valid. One that ends sooner is replaced when it is refused.
    return newToken(secret, clock.monotonicMs() + (seconds ?? Number.POSITIVE_INFINITY) * 900)
  })
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

const MAX_TEXT = 300

/** Stands for texts of the service that a run must not quote. */
const NOT_QUOTED = '[left out: the run holds a query whose value must not be shown]'

/** Safe for a message: one line, truncated, none that repeats a secret. @param hidesTexts one remark for all of them */
export function serverTexts(texts: readonly string[], hidesTexts: boolean): readonly string[] {
  const given = texts.filter((text) => text !== '')
  if (hidesTexts) return given.length === 0 ? [] : [NOT_QUOTED]
  return given
    .map((text) => (repeatsSecret(text) ? LEFT_OUT : cut(oneLine(text))))
    .filter((text) => text !== '')
}

function cut(line: string): string {
  const characters = [...line]
  return characters.length <= MAX_TEXT ? line : `${characters.slice(0, MAX_TEXT).join('')}…`
}

// Tokens, reports and errors.
const MAX_BYTES = 16 << 20

/**
 * The parser's error is not kept: it quotes the text. @param kind of the error of what is no JSON; `data`: it comes from
 * another server rather than from one that is down for a while @throws ExportError, `data` also: too large
 */
export function jsonBody(body: Uint8Array, where: string, kind: 'transient' | 'data' = 'transient'): unknown {
  const isLarge = body.byteLength > MAX_BYTES
  if (isLarge || hasTooManyValues(body)) {
    const excess = isLarge
      ? `is larger than ${MAX_BYTES} bytes`
      : 'holds more values than any response of this kind'
    const next = 'Check the address. If the error persists, report it to the service.'
    throw new ExportError({ kind: 'data', what: `The response ${excess}`, where, next })
  }
  const broken = (what: string): ExportError => {
    const next = 'Run again later. If the error persists, check the address.'
    return new ExportError({ kind, what, where, next })
  }
  if (!isUtf8(body)) throw broken('The response is no UTF-8')
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw broken('The response is no JSON')
  }
}
