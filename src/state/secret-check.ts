import { createHmac } from 'node:crypto'

/**
 * Tells one secret of a query from another without giving it away: a digest under the mask key, of which no column
 * holds the like. Without the key it is worth nothing; without a key there is none.
 */
export function secretCheck(maskKey: Uint8Array, secret: string): string {
  return createHmac('sha256', maskKey)
    .update(`spillway secret query check: ${secret.toWellFormed()}`)
    .digest('hex')
    .slice(0, 32)
}
