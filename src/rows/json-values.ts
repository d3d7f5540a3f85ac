export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** The parsed values of a shorter text always fit into memory. */
const MODEST_BYTES = 1 << 20
// A value takes some seventy bytes of memory. The largest page, 10,000 items with lists, has a tenth of this limit.
const MAX_VALUES = 2_000_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** Whether the memory of its values could exceed what is available: `[{},{},…` has three bytes for each value. */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (json.length <= MODEST_BYTES) return false
  let values = 0
  let inString = false
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (inString) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values++
  }
  return values > MAX_VALUES
}
