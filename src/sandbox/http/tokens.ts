import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { Settings } from '../options.ts'
import { serviceError, validate } from '../search/service-error.ts'

export type Tokens = {
  /** @throws ServiceError 401 unless the header carries a living bearer token */
  requireBearer(authorization: string | undefined): void
  /** @throws ServiceError 401, 422 */
  exchange(authorization: string | undefined, body: unknown): unknown
  /** The body of `GET /tokens/test`. */
  describe(): unknown
}

/** Source: the public documentation: tokens live one hour. */
const TOKEN_LIFETIME_MS = 3_600_000
const exchangeBody = z.strictObject({ tenant_id: z.number().int().nullish() })

export function tokens(settings: Settings): Tokens {
  const { apiKey, tokenLifetimeMs, now } = settings
  const expiries = new Map<string, number>()
  expiries.set(settings.token, tokenLifetimeMs === null ? Number.POSITIVE_INFINITY : now() + tokenLifetimeMs)
  let tenantId = 1
  return {
    requireBearer(authorization) {
      const token = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
      const expiry = token === undefined ? undefined : expiries.get(token)
      if (expiry === undefined || now() >= expiry) {
        throw serviceError(401, 'UNAUTHORIZED', 'the access token is missing, unknown or expired', {
          'www-authenticate': 'Bearer',
        })
      }
    },
    exchange(authorization, body) {
      if (authorization !== apiKey)
        throw serviceError(401, 'UNAUTHORIZED', 'the API key is missing or unknown')
      tenantId = validate(exchangeBody, body ?? {}, 'body').tenant_id ?? 1
      const token = `sandbox-token-${randomBytes(24).toString('hex')}`
      const expiry = now() + (tokenLifetimeMs ?? TOKEN_LIFETIME_MS)
      expiries.set(token, expiry)
      return { token, refresh_token_exp: Math.floor(expiry / 1000) }
    },
    describe: () => ({
      tenant_id: tenantId,
      organization_id: 1,
      api_key_id: 1,
      scopes: ['credentials:read', 'reports:read'],
      user_email: 'ops@quillmere.net',
      user_id: 1,
    }),
  }
}
