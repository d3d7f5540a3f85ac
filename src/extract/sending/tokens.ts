import * as z from 'zod'
import { type Auth, type Clock, ExportError, isHeaderText, nullIf } from '../../core/index.ts'
import {
  givenToken,
  headerText,
  jsonBody,
  newToken,
  serverTexts,
  type Token,
  type TokenSource,
  tokenSource,
} from '../../http/index.ts'

type ServiceTokenOptions = {
  readonly auth: Auth
  readonly clock: Clock
  readSecret(name: string): Promise<string>
  /** Exchanges an API key for the text of a token. */
  exchange(auth: Auth & { kind: 'api-key' }, apiKey: Token): Promise<string>
}

/** The tokens of requests to the service: one from the environment, or those that an API key is exchanged for. */
export function serviceTokens({ auth, clock, readSecret, exchange }: ServiceTokenOptions): TokenSource {
  return tokenSource(clock, async (held) => {
    if (auth.kind === 'token') return givenToken(auth.secretIn, await readSecret(auth.secretIn), held)
    const apiKey = headerText(auth.secretIn, await readSecret(auth.secretIn))
    const given = { header: apiKey, secret: apiKey, renewAtMs: Number.POSITIVE_INFINITY }
    const secret = await exchange(auth, given)
    return newToken(secret, clock.monotonicMs() + RENEW_AFTER_MS)
  })
}

/** Tokens live for an hour (service documentation): a response still arrives while the token is valid. */
const RENEW_AFTER_MS = 54 * 60_000

/** What the service reports about a token; null: not reported. */
export type TokenInfo = NonNullable<ReturnType<typeof testedToken>>

const Exchanged = z.object({ token: z.string().refine(isHeaderText) })

const Tested = z.object({
  tenant_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  scopes: z.array(z.string()).nullish(),
})

/** Source: public API, `POST /tokens/generate`. @throws ExportError `transient`: no JSON, `data`: no token in it */
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

/** null: no JSON, as when a service returns a page for any address. Source: public API, `GET /tokens/test`. */
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
