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
export function hasTooManyValues(body: Uint8Array): boolean {
  if (body.length <= MODEST_BYTES) return false
  let values = 0
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]
    if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values++
  }
  return values > MAX_VALUES
}
