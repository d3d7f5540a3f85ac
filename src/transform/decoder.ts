import type { BatchAllocator, DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { CredentialColumns } from './columns/credential-columns.ts'
import { CredentialPage } from './credential-page.ts'
import { ExtraReader } from './extra/extra-reader.ts'
import { FastPath } from './fast-path.ts'
import { masksOf, Suppression } from './mask/index.ts'
import { credentialQuarantine } from './quarantine.ts'
import { reportDecoder } from './reports.ts'
import { type Decode, parseResponse } from './response.ts'
import { itemStarts } from './scan/json-steps.ts'

/**
 * Decodes the bytes of one response into a page. The record batch overwrites these bytes if their memory is shared and
 * large enough: rows then take no memory of their own. Nothing else in the result points into them.
 */
export type Decoder = (body: Uint8Array, context: PageContext) => DecodedPage

/**
 * Makes the decoder of a run. It flattens and masks: bytes in, columns out. It reuses its working memory, so one decoder
 * serves one page at a time. Decoding throws ExportError: 'transient' when the bytes are not such a response, 'data'
 * when the response violates the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(plan: DecodePlan): Decoder {
  const decode = plan.resource === 'reports' ? reportDecoder(plan) : credentialDecoder(plan)
  return (body, context) =>
    decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context, roomIn(body.buffer))
}

function roomIn(response: ArrayBufferLike): BatchAllocator {
  return (bytes) =>
    response instanceof SharedArrayBuffer && bytes <= response.byteLength
      ? new Uint8Array(response, 0, bytes)
      : new Uint8Array(bytes)
}

/** Number of pages decoded on the plain path alone after the fast path has abandoned a valid page. */
const PLAIN_PATH_PAGES = 15

/**
 * Decodes pages of credentials: on the fast path if it supports the page, otherwise on the plain path. The result is the
 * same. If the fast path abandons a page, it would probably abandon the next ones too, so these are not tried on it.
 */
function credentialDecoder(plan: DecodePlan): Decode {
  const { fast, plain } = credentialPaths(plan)
  let plainPagesLeft = 0

  return (body, context, room) => {
    if (plainPagesLeft > 0) {
      plainPagesLeft--
      return plain(body, context, room)
    }
    const page = fast(body, context, room)
    if (page !== null) return page
    const plainPage = plain(body, context, room)
    plainPagesLeft = PLAIN_PATH_PAGES
    return plainPage
  }
}

export type CredentialPaths = {
  /** Null when the fast path does not support the page. */
  readonly fast: Decode<DecodedPage | null>
  /** JSON.parse and the schema for every item: the reference for the fast path. */
  readonly plain: Decode
}

/** Both paths, with shared memory. */
export function credentialPaths(plan: DecodePlan): CredentialPaths {
  const masks = masksOf(plan)
  const columns = new CredentialColumns(plan, masks)
  const quarantine = credentialQuarantine(masks, plan.extras)
  const extras = plan.extras.length === 0 ? null : new ExtraReader(plan.extras, plan)
  const fastPath = new FastPath(extras)
  const ids = new ChainIds()
  const suppression = Suppression.of(plan.suppress)
  const newPage = (context: PageContext, room?: BatchAllocator) =>
    new CredentialPage(plan, { columns, ids, quarantine, extras, suppression }, context, room)

  return {
    fast: (body, context, room) => fastPath.decode(body, newPage(context, room)),
    plain: (body, context, room) => {
      const { items, next, text } = parseResponse(body, context)
      const page = newPage(context, room)
      const starts = extras === null ? [] : itemStarts(text)
      for (const [index, item] of items.entries()) {
        page.add(item, index, { body: text, start: () => starts[index]! })
      }
      return page.finish(items.length, next)
    },
  }
}
