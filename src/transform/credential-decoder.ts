import type { BatchAllocator, DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { CredentialColumns } from './columns/index.ts'
import { CredentialPage } from './credential-page.ts'
import { ExtraReader, itemStarts } from './extra/index.ts'
import { FastPath } from './fast-path.ts'
import { masksOf } from './mask/index.ts'
import { parseResponse } from './response.ts'
import { credentialQuarantine, pagePlace } from './set-aside/index.ts'

/** Pages that go the plain path at once after a good page that the fast path abandoned. */
const PAGES_TO_SIT_OUT = 15

/**
 * Decodes pages of credentials: on the fast path where it understands the page, on the plain path
 * otherwise. The result is the same either way. When the service's pages turn out to be of a kind that the
 * fast path abandons, trying each of them would only cost time, so most are not tried.
 */
export function credentialDecoder(
  plan: DecodePlan,
): (body: Buffer, context: PageContext, room?: BatchAllocator) => DecodedPage {
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
  readonly fast: (body: Buffer, context: PageContext, room?: BatchAllocator) => DecodedPage | null
  /** JSON.parse and the schema for every item: what a page means is what this makes of it. */
  readonly plain: (body: Buffer, context: PageContext, room?: BatchAllocator) => DecodedPage
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
      const { items, next, exactItems, text } = parseResponse(body, context.query, pagePlace(context))
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
