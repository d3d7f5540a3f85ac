import { define, isContainer } from '../problems/tree.ts'

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

/** Restores them in every text of a value. */
export function unmasked<Value>(value: Value): Value
export function unmasked(value: unknown): unknown {
  if (typeof value === 'string')
    return value.replace(MASKED, (character) => String.fromCharCode(character.charCodeAt(0) - FIRST))
  if (Array.isArray(value)) return value.map(unmasked)
  if (!isContainer(value)) return value
  const copy = {}
  for (const [key, inner] of Object.entries(value)) define(copy, unmasked(key), unmasked(inner))
  return copy
}
