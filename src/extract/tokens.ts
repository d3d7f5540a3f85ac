import * as z from 'zod'
import { type Auth, type Clock, ExportError, isHeaderText, learnSecret, nullIf } from '../core/index.ts'
import { jsonBody, serverTexts } from '../http/index.ts'

/** The credential of a request. Compared by identity: a renewed token is another object. */
export type Token = {
  /** Value of the `Authorization` header. */
  readonly header: string
  /** The part that must never be shown. It stays a known secret after another token replaces it. */
  readonly secret: string
  /** Monotonic clock. The token is not used from then on. */
  readonly renewAtMs: number
}

/** Provides the token of requests. Concurrent callers share one read or exchange. */
export type TokenSource = {
  /** A token that is there, not about to expire and not being replaced; null: `current` obtains one. */
  held(): Token | null
  /** A token that is not about to expire. @throws ExportError `config`, or as the exchange does */
  current(): Promise<Token>
  /** Replaces a rejected token. @throws `refusal` when there is no other */
  replace(refused: Token, refusal: Error): Promise<void>
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
    // The same string is the same token: reading it again renews nothing.
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
    return bearer(secret, clock.monotonicMs() + RENEW_AFTER_MS)
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

  return {
    // Not during a renewal: the one in memory may be the rejected one.
    held: () => (pending === null && held !== null && clock.monotonicMs() < held.renewAtMs ? held : null),
    current: obtainOnce,
    async replace(refused, refusal) {
      if (held !== refused) return // another caller has replaced it
      if ((await obtainOnce()) === refused) throw refusal
    },
  }
}

/** The source of a credential that is never renewed. */
export function always(token: Token): TokenSource {
  return {
    held: () => token,
    current: async () => token,
    async replace(_refused, refusal) {
      throw refusal
    },
  }
}

function headerText(variable: string, text: string): string {
  learnSecret(text)
  if (isHeaderText(text)) return text
  throw new ExportError({
    kind: 'config',
    what: 'The value holds a line break, another control character or a character outside ASCII',
    where: `variable ${variable}`,
    next: 'Set it to the token or key alone.',
  })
}

function bearer(secret: string, renewAtMs: number): Token {
  return { header: `Bearer ${secret}`, secret, renewAtMs }
}

/**
 * Tokens live for an hour (service documentation): a response still arrives while the token is valid. One that ends
 * sooner is replaced when it is refused.
 */
const RENEW_AFTER_MS = 54 * 60_000

/** What the service reports about a token; null: not reported. */
export type TokenInfo = NonNullable<ReturnType<typeof testedToken>>

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
  throw new ExportError({
    kind: 'data',
    what: 'The response holds no field "token" that can be sent as a header',
    where,
    next: 'Check service.token_url.',
  })
}

/**
 * Parses the response to a token test; null: it is no JSON, as when a service returns a page for any address.
 * Source: public API, `GET /tokens/test`. JSON of another shape has null fields.
 * @param hidesTexts as in `ServiceDeps`
 */
export function testedToken(body: Uint8Array, where: string, hidesTexts: boolean) {
  let json: unknown
  try {
    json = jsonBody(body, where)
  } catch (error) {
    return nullIf('transient')(error)
  }
  const parsed = Tested.safeParse(json)
  return {
    tenantId: parsed.data?.tenant_id ?? null,
    organizationId: parsed.data?.organization_id ?? null,
    scopes: serverTexts(parsed.data?.scopes ?? [], hidesTexts),
  }
}
