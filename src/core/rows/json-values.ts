export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

// What JSON.parse makes of a text below this can not fill the memory.
const MODEST_BYTES = 1 << 20
// Some seventy bytes of memory each. The largest page of the service's own, 10,000 items with lists, has a tenth of it.
const MAX_VALUES = 2_000_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** Whether a JSON text is so long that its values have to be counted before it is parsed. */
export function mayHoldManyValues(bytes: number): boolean {
  return bytes > MODEST_BYTES
}

/**
 * Whether a JSON text holds so many values that parsing it could take more memory than there is: `[{},{},…` needs three
 * bytes a value. Marks inside strings do not count.
 */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (!mayHoldManyValues(json.length)) return false
  let values = 0
  let isText = false
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (isText) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values++
  }
  return values > MAX_VALUES
}
