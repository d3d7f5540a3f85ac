import * as z from 'zod'
import { type Clock, ExportError, isHeaderText } from '../../core/index.ts'
import type { JsonRequests } from './json-requests.ts'
import { newToken, type TokenSource, tokenSource } from './tokens.ts'

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
  const where = `POST ${url.origin}${url.pathname}`
  return tokenSource(clock, async () => {
    const form = { client_id: await clientId(), client_secret: await clientSecret() }
    const asked = { grant_type: 'client_credentials', ...form, ...(scope === null ? {} : { scope }) }
    const body = new URLSearchParams(asked)
    const { status, json, text } = await requests.send({ method: 'POST', url, body, expected: [400] }, null)
    const issued = Issued.safeParse(json)
    if (!issued.success) {
      throw new ExportError({
        kind: status === 400 ? 'credentials' : 'data',
        what: status === 400 ? text : 'The response holds no access_token that can be sent as a header',
        where,
        next: 'Check the address of the token, and client id, secret and scope.',
      })
    }
    const { access_token: secret, expires_in: seconds } = issued.data
    // Early enough for a response to arrive while it is valid. One that ends sooner is replaced when it is refused.
    return newToken(secret, seconds == null ? Number.POSITIVE_INFINITY : clock.monotonicMs() + seconds * 900)
  })
}
