import type { BatchAllocator, DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { CredentialColumns } from './columns/credential-columns.ts'
import { CredentialPage } from './credential-page.ts'
import { ExtraReader } from './extra/extra-reader.ts'
import { FastPath } from './fast-path.ts'
import { masksOf } from './mask/index.ts'
import { credentialQuarantine } from './quarantine.ts'
import { reportDecoder } from './reports.ts'
import { type Decode, parseResponse } from './response.ts'
import { itemStarts } from './scan/json-steps.ts'

/**
 * Turns one response's bytes into a page. Its record batch overwrites them if their memory is shared and large enough:
 * rows then need no memory of their own, and none has to be collected. Nothing else that is returned points into them.
 */
export type Decoder = (body: Uint8Array, context: PageContext) => DecodedPage

/**
 * Makes the decoder of a run: flatten and mask, bytes in, columns out. It keeps its working memory from
 * page to page, so one decoder serves one page at a time. Decoding throws ExportError: 'transient' when
 * the bytes are no such response at all, 'data' when the response breaks the contract.
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

/** Pages decoded on the plain path alone after a valid page that the fast path abandoned. */
const PAGES_TO_SIT_OUT = 15

/**
 * Decodes pages of credentials: on the fast path where it understands the page, on the plain path
 * otherwise. The result is the same either way. Where the fast path abandons the service's pages, trying it
 * on each of them would only cost time, so most are not tried.
 */
function credentialDecoder(plan: DecodePlan): Decode {
  const { fast, plain } = credentialPaths(plan)
  let toSitOut = 0

  return (body, context, room) => {
    if (toSitOut > 0) {
      toSitOut--
      return plain(body, context, room)
    }
    const page = fast(body, context, room)
    if (page !== null) return page
    const plainPage = plain(body, context, room)
    toSitOut = PAGES_TO_SIT_OUT
    return plainPage
  }
}

export type CredentialPaths = {
  /** Null when it does not understand the page. */
  readonly fast: Decode<DecodedPage | null>
  /** JSON.parse and the schema for every item: what a page means is what this makes of it. */
  readonly plain: Decode
}

/** Both paths, over the same memory. */
export function credentialPaths(plan: DecodePlan): CredentialPaths {
  const masks = masksOf(plan)
  const columns = new CredentialColumns(plan, masks)
  const quarantine = credentialQuarantine(masks, plan.extras)
  const extras = plan.extras.length === 0 ? null : new ExtraReader(plan.extras, plan)
  const fastPath = new FastPath(extras)
  const ids = new ChainIds()
  const newPage = (context: PageContext, room?: BatchAllocator) =>
    new CredentialPage(plan, columns, ids, quarantine, extras, context, room)

  return {
    fast: (body, context, room) => fastPath.decode(body, newPage(context, room)),
    plain: (body, context, room) => {
      const { items, next, exactItems, text } = parseResponse(body, context)
      const page = newPage(context, room)
      const starts = extras === null ? [] : itemStarts(text)
      for (const [index, item] of items.entries()) {
        page.add(item, index, {
          exact: () => exactItems()[index],
          body: text,
          start: () => starts[index]!,
        })
      }
      return page.finish(items.length, next)
    },
  }
}
