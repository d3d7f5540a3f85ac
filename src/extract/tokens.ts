import * as z from 'zod'
import {
  type Auth,
  type Clock,
  ExportError,
  isExportError,
  isHeaderText,
  learnSecret,
} from '../core/index.ts'
import { jsonBody, serverTexts } from './responses.ts'

/** What a request is authorised with. Compared by identity: a renewed token is another object. */
export type Token = {
  /** Value of the `Authorization` header. */
  readonly header: string
  /** The part of it that must never be shown; known as a secret for good, also once another takes its place. */
  readonly secret: string
  /** Monotonic clock; it is not to be used from then on. */
  readonly renewAtMs: number
}

/** What a request needs of the source of its token. */
export type Tokens = {
  /** A token that is not about to expire. @throws ExportError `config`, or as the exchange does */
  current(): Promise<Token>
  /** False when it is about to expire, or another has taken or is taking its place. */
  isCurrent(token: Token): boolean
}

/** Keeps one token for everybody. However many ask at once, it is read or exchanged once. */
type TokenSource = Tokens & {
  /** Sees to it that there is another token than the refused one. @throws `refusal` when there is no other */
  replace(refused: Token, refusal: ExportError): Promise<void>
}

type TokenSourceOptions = {
  readonly auth: Auth
  readonly clock: Clock
  readSecret(name: string): Promise<string>
  /** Exchanges an API key for the text of a token. */
  exchange(auth: Auth & { kind: 'api-key' }, apiKey: Token): Promise<string>
}

export function tokenSource({ auth, clock, readSecret, exchange }: TokenSourceOptions): TokenSource {
  let held: Token | null = null
  let pending: Promise<Token> | null = null

  async function read({ tokenEnv }: Auth & { kind: 'token' }): Promise<Token> {
    const secret = headerText(tokenEnv, await readSecret(tokenEnv))
    // The same text is the same token: to read it again renews nothing.
    return held?.secret === secret ? held : bearer(secret, Number.POSITIVE_INFINITY)
  }

  async function renew(auth: Auth & { kind: 'api-key' }): Promise<Token> {
    const apiKey = headerText(auth.apiKeyEnv, await readSecret(auth.apiKeyEnv))
    const secret = await exchange(auth, {
      header: apiKey,
      secret: apiKey,
      renewAtMs: Number.POSITIVE_INFINITY,
    })
    learnSecret(secret)
    return bearer(secret, clock.monotonicMs() + auth.tokenLifetimeMs - marginMs(auth.tokenLifetimeMs))
  }

  async function obtain(): Promise<Token> {
    try {
      held = auth.kind === 'token' ? await read(auth) : await renew(auth)
      return held
    } finally {
      pending = null
    }
  }

  function obtainOnce(): Promise<Token> {
    pending ??= obtain()
    return pending
  }

  // During a renewal no token is current: the one held may be the refused one.
  const isCurrent = (token: Token): boolean =>
    pending === null && token === held && clock.monotonicMs() < token.renewAtMs

  return {
    current: async () => (held !== null && isCurrent(held) ? held : obtainOnce()),
    isCurrent,
    async replace(refused, refusal) {
      if (held !== refused) return // somebody was quicker
      if ((await obtainOnce()) === refused) throw refusal
    },
  }
}

/** The source of a credential that needs no renewal. */
export function always(token: Token): Tokens {
  return { current: async () => token, isCurrent: () => true }
}

function headerText(variable: string, text: string): string {
  learnSecret(text)
  if (isHeaderText(text)) return text
  throw new ExportError(
    'config',
    'The value holds a line break, another control character or a character outside ASCII',
    `variable ${variable}`,
    'Set it to the token or key alone.',
  )
}

function bearer(secret: string, renewAtMs: number): Token {
  return { header: `Bearer ${secret}`, secret, renewAtMs }
}

/** Early enough for a request to be answered while the token still holds; half of a very short life. */
function marginMs(lifetimeMs: number): number {
  return Math.min(Math.max(60_000, lifetimeMs / 10), lifetimeMs / 2)
}

/** What the service tells about a token; null: it did not say. */
export type TokenInfo = {
  readonly tenantId: number | null
  readonly organizationId: number | null
  readonly scopes: readonly string[]
}

const Exchanged = z.object({ token: z.string().refine(isHeaderText) })

const Tested = z.object({
  tenant_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  scopes: z.array(z.string()).nullish(),
})

/**
 * The token in the response to an exchange. Source: public API, `POST /tokens/generate`.
 * @throws ExportError `transient` when it is no JSON, `data` when there is no token in it
 */
export function exchangedToken(body: Uint8Array, where: string): string {
  const parsed = Exchanged.safeParse(jsonBody(body, where))
  if (parsed.success) return parsed.data.token
  throw new ExportError(
    'data',
    'The answer holds no field "token" that can be sent as a header',
    where,
    'Check service.token_url.',
  )
}

/**
 * What the response to a test says; null: it is no JSON, as of a service that answers any address with a page.
 * Source: public API, `GET /tokens/test`; JSON of another shape tells nothing.
 */
export function testedToken(body: Uint8Array, where: string): TokenInfo | null {
  let json: unknown
  try {
    json = jsonBody(body, where)
  } catch (error) {
    if (isExportError(error, 'transient')) return null
    throw error
  }
  const parsed = Tested.safeParse(json)
  return {
    tenantId: parsed.data?.tenant_id ?? null,
    organizationId: parsed.data?.organization_id ?? null,
    scopes: serverTexts(parsed.data?.scopes ?? []),
  }
}
