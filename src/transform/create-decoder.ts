import {
  type DecodedPage,
  type DecodePlan,
  ExportError,
  type FrameRoom,
  type PageContext,
} from '../core/index.ts'
import { credentialDecoder } from './credential-decoder.ts'
import { reportDecoder } from './reports.ts'
import { pagePlace } from './set-aside/index.ts'

/**
 * Turns one answer's bytes into a page. Nothing returned points into them but the frame, if that gets its room where
 * they lie; once it has its room they are not looked at any more.
 * @param room for the frame; by default fresh memory
 */
export type Decoder = (body: Uint8Array, context: PageContext, room?: FrameRoom) => DecodedPage

/**
 * Makes the decoder of a run: flatten and mask, bytes in, columns out. It keeps its working memory from
 * page to page, so one decoder serves one page at a time. Decoding throws ExportError: 'transient' when
 * the bytes are no such answer at all, 'data' when the answer breaks the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(plan: DecodePlan): Decoder {
  const decode = plan.resource === 'reports' ? reportDecoder(plan) : credentialDecoder(plan)
  return (body, context, room) => {
    if (hasTooManyValues(body)) throw tooManyValues(context)
    return decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context, room)
  }
}

function tooManyValues(context: PageContext): ExportError {
  return new ExportError(
    'data',
    'The answer holds more values than a page can have',
    pagePlace(context),
    'Lower extract.page_size; if it stays so, report it to the service.',
  )
}

// Below this the objects that JSON.parse makes of a body can not fill the memory; no page of the service's
// own comes near it.
const MODEST_BYTES = 16 << 20
// Some fifty bytes of memory each.
const MAX_VALUES = 10_000_000

const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/**
 * Whether a JSON text may hold so many values that parsing it would take gigabytes: `[{},{},…` needs three
 * bytes a value. Marks inside strings are counted as well, so the limit leaves room for those.
 */
function hasTooManyValues(body: Uint8Array): boolean {
  if (body.length <= MODEST_BYTES) return false
  let values = 0
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]
    if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values++
  }
  return values > MAX_VALUES
}
