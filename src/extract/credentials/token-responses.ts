import * as z from 'zod'
import { ExportError, isExportError, isHeaderText } from '../../core/index.ts'
import { jsonBody, serverTexts } from '../responses/index.ts'

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
