import * as z from 'zod'
import { type Auth, type ErrorKind, ExportError } from '../../core/index.ts'
import type { HttpResponse } from '../transport/index.ts'
import { jsonBody, serverTexts } from './response-body.ts'

export type RequestFacts = {
  readonly where: string
  /** Whether a cursor went along: only then can a refusal mean the cursor. */
  readonly hasCursor: boolean
}

/** A response of the service other than 2xx. */
export class ResponseError extends ExportError {
  constructor(
    readonly status: number,
    /** Whether something that stands before the service says so: a page of HTML, or plain text. */
    readonly isGateways: boolean,
    ...parts: ConstructorParameters<typeof ExportError>
  ) {
    super(...parts)
  }
}

/**
 * What a response other than 2xx means, with the service's own words where they can be shown.
 * Source: public API documentation, errors; the spec shows none.
 */
export function responseError(
  { status, headers, body }: HttpResponse,
  auth: Auth,
  request: RequestFacts,
): ResponseError {
  const said = serviceWords(body, headers['content-type'])
  const what = `The service answered ${status}${said}`
  const isGateways = body.byteLength > 0 && parsed(body) === null
  const fail = (kind: ErrorKind, next: string) =>
    new ResponseError(status, isGateways, kind, what, request.where, next)
  if (OUT_OF_SEARCHES.has(status) && headers['x-flare-global-searches-remaining'] === '0') {
    return fail('quota', 'Wait for the next quota period, then run again: the export goes on from there.')
  }
  if (status === 401 || status === 403) {
    const [variable, what, other] =
      auth.kind === 'token'
        ? [auth.tokenEnv, 'token', 'an API key belongs into service.api_key_env']
        : [auth.apiKeyEnv, 'API key', 'an access token belongs into service.token_env']
    return fail(
      'credentials',
      `Check that ${variable} holds a valid ${what} with access to what is asked for; ${other}.`,
    )
  }
  if (status === 408 || status === 429 || status >= 500) {
    return fail('transient', 'Run again later: the export goes on from where it stopped.')
  }
  if (status >= 300 && status < 400) {
    return fail(
      'refused',
      'Redirects are not followed, because the token would go along: correct service.base_url or the path.',
    )
  }
  if (request.hasCursor && CURSOR_STATUSES.has(status)) {
    return fail(
      'cursor',
      'The cursor is no longer accepted: run again to search on from the last exported row.',
    )
  }
  return fail('refused', 'It would be refused again: correct what the answer names, then run again.')
}

// How a service that has no searches left may refuse one; the public documentation does not say.
const OUT_OF_SEARCHES = new Set([402, 403, 429])

// Statuses by which a service may say that it does not know a cursor, or no longer.
const CURSOR_STATUSES = new Set([400, 404, 409, 410, 422])

const CodedError = z.object({
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }),
})
const Invalid = z.object({
  detail: z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() })),
})
const Detail = z.object({ detail: z.string() })

const LESS_THAN = 0x3c

/** `: …` to be put behind the status, or nothing. */
function serviceWords(body: Uint8Array, contentType: string | undefined): string {
  if (contentType?.includes('html') || body[0] === LESS_THAN) return ' with an HTML page'
  const shown = serverTexts(errorWords(parsed(body))).filter((words) => words !== '')
  return shown.length === 0 ? '' : `: ${shown.join(': ')}`
}

function errorWords(json: unknown): readonly string[] {
  const coded = CodedError.safeParse(json)
  if (coded.success) return [coded.data.error.code ?? '', coded.data.error.message ?? '']
  const invalid = Invalid.safeParse(json)
  if (invalid.success) {
    return [invalid.data.detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')]
  }
  const detail = Detail.safeParse(json)
  return detail.success ? [detail.data.detail] : []
}

function parsed(body: Uint8Array): unknown {
  try {
    return jsonBody(body, '')
  } catch {
    return null
  }
}
