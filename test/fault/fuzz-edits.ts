import fc from 'fast-check'

/** One edit of a byte sequence; `at` is a fraction of its length. */
export type Edit =
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'remove'; readonly at: number; readonly length: number }
  | { readonly kind: 'double'; readonly at: number; readonly length: number }
  | { readonly kind: 'insert'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: 'flip'; readonly at: number; readonly bit: number }

/** @param words inserted besides random bytes */
export function edits(words: readonly string[] = []): fc.Arbitrary<readonly Edit[]> {
  const at = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  const length = fc.integer({ min: 1, max: 60 })
  const word = fc.constantFrom(...words, '\n').map((text) => new TextEncoder().encode(text))
  const bytes = fc.oneof(
    { weight: 2, arbitrary: word },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 8 }) },
  )
  const edit: fc.Arbitrary<Edit> = fc.oneof(
    fc.record({ kind: fc.constant('cut' as const), at }),
    fc.record({ kind: fc.constant('remove' as const), at, length }),
    fc.record({ kind: fc.constant('double' as const), at, length }),
    fc.record({ kind: fc.constant('insert' as const), at, bytes }),
    fc.record({ kind: fc.constant('flip' as const), at, bit: fc.integer({ min: 0, max: 7 }) }),
  )
  return fc.array(edit, { minLength: 1, maxLength: 3 })
}

export function edited(bytes: Uint8Array, list: readonly Edit[]): Buffer {
  return list.reduce(apply, Buffer.from(bytes))
}

function apply(bytes: Buffer, edit: Edit): Buffer {
  const at = Math.floor(edit.at * bytes.length)
  switch (edit.kind) {
    case 'cut':
      return bytes.subarray(0, at)
    case 'remove':
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + edit.length)])
    case 'double':
      return Buffer.concat([bytes.subarray(0, at + edit.length), bytes.subarray(at)])
    case 'insert':
      return Buffer.concat([bytes.subarray(0, at), edit.bytes, bytes.subarray(at)])
    case 'flip': {
      const flipped = Buffer.from(bytes)
      if (flipped.length > 0) flipped[at]! ^= 1 << edit.bit
      return flipped
    }
  }
}
