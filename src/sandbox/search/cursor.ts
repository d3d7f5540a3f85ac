import { createHmac, timingSafeEqual } from 'node:crypto'
import { serviceError } from './service-error.ts'

/** Where a chain of pages continues: an index (-1 = before the first), and how many pages and rows came before. */
type CursorPoint = { readonly index: number; readonly page: number; readonly rows: number }

/**
 * Signs the point and every other parameter. So a cursor holds no query (a secret one is as sensitive as its response),
 * lives as long as the key, and works with the same request only. @param requestKey these, in one fixed spelling
 */
export function writeCursor(key: string, requestKey: string, point: CursorPoint): string {
  const text = `${(point.index + 1).toString(36)}.${point.page.toString(36)}.${point.rows.toString(36)}`
  return Buffer.concat([sign(key, requestKey, text), Buffer.from(text)]).toString('base64url')
}

/** @throws ServiceError 400 `INVALID_CURSOR` when it is damaged, signed by another key or belongs to another request */
export function readCursor(key: string, requestKey: string, cursor: string): CursorPoint {
  const bytes = Buffer.from(cursor, 'base64url')
  const signature = bytes.subarray(0, SIGNATURE_BYTES)
  const text = bytes.subarray(SIGNATURE_BYTES).toString('latin1')
  const match = /^([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)$/.exec(text)
  if (match && timingSafeEqual(signature, sign(key, requestKey, text))) {
    const [index = 0, page = 0, rows = 0] = match.slice(1).map((digits) => Number.parseInt(digits, 36))
    return { index: index - 1, page, rows }
  }
  throw serviceError(
    400,
    'INVALID_CURSOR',
    'from is not a cursor of this search: every other parameter must stay the same from page to page',
  )
}

const SIGNATURE_BYTES = 18

function sign(key: string, requestKey: string, text: string): Buffer {
  return createHmac('sha256', key).update(`${text}\n${requestKey}`).digest().subarray(0, SIGNATURE_BYTES)
}
