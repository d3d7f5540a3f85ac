const REFERENCE = /\$\{[A-Za-z_]\w*(?::-[^}\n]*)?\}/g
const BRACKETS = /[[\]{},]/g
// A low surrogate alone is in no text that was UTF-8.
const FIRST = 0xdc00
const MASKED = /(?<![\ud800-\udbff])[\udc00-\udc7f]/g

/**
 * Hides the brackets and commas of references to variables from YAML, for which they would end a value inside { } and
 * [ ]. Offsets stay the same.
 */
export function masked(text: string): string {
  return text.replace(REFERENCE, (reference) =>
    reference.replace(BRACKETS, (character) => String.fromCharCode(FIRST + character.charCodeAt(0))),
  )
}

/** Restores them in a scalar. */
export function unmasked(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value.replace(MASKED, (character) => String.fromCharCode(character.charCodeAt(0) - FIRST))
}
