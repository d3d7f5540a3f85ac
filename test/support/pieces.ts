/** Chunks that come one after the other, in the same memory. @param isWhole whether they end, else they fail */
export async function* pieces(
  given: Iterable<string | Uint8Array>,
  isWhole = true,
): AsyncGenerator<Uint8Array> {
  let last = Buffer.alloc(0)
  for (const piece of given) {
    last.fill('#')
    last = Buffer.from(piece)
    yield last
  }
  last.fill('#')
  if (!isWhole) throw new Error('no more')
}
