import * as z from 'zod'
import {
  type ErrorKind,
  ExportError,
  type PlainError,
  repeatsSecret,
  type ServiceSettings,
} from '../../core/index.ts'
import { type HttpResponse, isSuccess, jsonBody, serverTexts } from '../../http/index.ts'
import type { SenderParts } from './outgoing.ts'

/** A response of the service other than 2xx, or a web page in place of JSON. */
export class ResponseError extends ExportError {
  constructor(
    readonly status: number,
    details: PlainError & ErrorOptions & { readonly said?: string },
  ) {
    super(details)
  }
}

/** Once there was a page, a refusal concerns its query, a web page is an outage. Source: public API, errors. */
export function responseError(
  { status, headers, body }: HttpResponse,
  {
    settings: { auth },
    hidesTexts,
    contact: { hasSucceeded },
  }: Pick<SenderParts, 'hidesTexts' | 'contact'> & { readonly settings: Pick<ServiceSettings, 'auth'> },
  request: { readonly where: string; readonly hasCursor: boolean; readonly feed?: string | undefined },
): ResponseError {
  const isPage = isHtml({ headers, body })
  const { code, said } = isPage ? { code: ' and an HTML page', said: '' } : serviceWords(body, hidesTexts)
  const what = `The service responded with ${status}${code}`
  const fail = (kind: ErrorKind, next: string) =>
    new ResponseError(status, { kind, what, where: request.where, next, said })
  if (OUT_OF_SEARCHES.has(status) && headers['x-flare-global-searches-remaining'] === '0') {
    return fail('quota', 'Wait for the next quota period, then run again: the export resumes from there.')
  }
  if (isPage && hasSucceeded) return fail('transient', RUN_AGAIN)
  if (isSuccess(status)) {
    const next = 'Check service.base_url: a web server, a login or a maintenance page answers there.'
    return fail('transient', next)
  }
  const { feed } = request
  if (feed !== undefined && (status === 404 || (status === 403 && feed !== TENANT))) {
    return fail(
      'refused',
      `Check that ${feed} exists and that the token, or its API key, has the permission to read the feed of ${feed}, and that service.base_url and the path of feeds are right; other feeds are not affected.`,
    )
  }
  if (status === 403 && hasSucceeded) {
    const next =
      'Check that the token has access to what this query asks for; other queries are not affected.'
    return fail('refused', next)
  }
  if (status === 401 || status === 403) {
    const [variable, what, other] =
      auth.kind === 'token'
        ? [auth.secretIn, 'token', 'an API key goes where service.api_key_env or api_key_file says']
        : [auth.secretIn, 'API key', 'an access token goes where service.token_env or token_file says']
    return fail(
      'credentials',
      `Check that ${variable} holds a valid ${what} with ${feed === undefined ? 'access to the requested data' : `the permission to read the feed of ${feed}`}; ${other}.`,
    )
  }
  if (status === 408 || status === 429 || status >= 500) {
    return fail('transient', RUN_AGAIN)
  }
  if (status >= 300 && status < 400) {
    return fail(
      'refused',
      'Redirects are not followed, because the token would go along: correct service.base_url or the path.',
    )
  }
  // Only with a cursor can a rejection concern the cursor.
  if (request.hasCursor && CURSOR_STATUSES.has(status)) {
    return fail('cursor', 'The cursor is no longer accepted: run again to resume from the last exported row.')
  }
  const wrong = said === '' ? 'the query or the address' : 'what the response names (stderr shows it)'
  return fail('refused', `A repeated request would be rejected too: correct ${wrong}, then run again.`)
}

export const TENANT = 'the tenant'

const RUN_AGAIN = 'Run again later: the export resumes where it stopped.'

// Statuses by which a service may report that no searches are left; the public documentation names none.
const OUT_OF_SEARCHES = new Set([402, 403, 429])

// Statuses by which a service may report an unknown or expired cursor.
const CURSOR_STATUSES = new Set([400, 404, 409, 410, 422])

const Coded = z.object({ code: z.string().nullish(), message: z.string().nullish() })
const Invalid = z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() }))
const ErrorBody = z.union([
  z.object({ error: Coded }),
  z.object({ detail: z.union([Invalid, z.string()]) }),
  z.object({ error: z.string() }).transform(({ error }) => ({ detail: error })),
  z.object({ message: z.string() }).transform(({ message }) => ({ detail: message })),
])

/** `<` after blanks and a byte order mark. */
const BEGINS_AS_PAGE = /^(?:\u00ef\u00bb\u00bf)?\s*</
const MAX_BLANKS = 1024

/** Whether a web page came in place of the service's JSON, with a status of success, also as the last attempt. */
export function isWebPage(error: unknown): boolean {
  return isSuccess(statusOf(error) ?? 0)
}

/** Of the response that an error is about, also as the last attempt; null: of none. */
export function statusOf(error: unknown): number | null {
  const response = error instanceof Error && !(error instanceof ResponseError) ? error.cause : error
  return response instanceof ResponseError ? response.status : null
}

export function isHtml({ headers, body }: Pick<HttpResponse, 'headers' | 'body'>): boolean {
  if (headers['content-type']?.includes('html') === true) return true
  const start = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, MAX_BLANKS))
  return BEGINS_AS_PAGE.test(start.toString('latin1'))
}

/** The code as `: …`, to be appended to the status, or nothing; other texts may quote a row. */
function serviceWords(body: Uint8Array, hidesTexts: boolean) {
  const { code = '', text } = errorWords(parsed(body))
  const isCode = CODE.test(code) && !repeatsSecret(code)
  const said = serverTexts(isCode ? [text] : [code, text], hidesTexts).join(': ')
  return { code: isCode ? `: ${code}` : '', said }
}

/** A code names a kind of error, in words. Other strings may quote the request. */
const CODE = /^(?=.{3,64}$)[A-Z]+(?:_[A-Z]+)*$/

function errorWords(json: unknown): { readonly code?: string; readonly text: string } {
  const { data } = ErrorBody.safeParse(json)
  if (data === undefined) return { text: '' }
  if ('error' in data) return { code: data.error.code ?? '', text: data.error.message ?? '' }
  const { detail } = data
  if (typeof detail === 'string') return { text: detail }
  return { text: detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ') }
}

function parsed(body: Uint8Array): unknown {
  try {
    return jsonBody(body, '')
  } catch {
    return null
  }
}
