/**
 * Decompresses a page. hyparquet's own function walks back and forth without end over a literal whose length is damaged.
 * Source: google/snappy, format_description.txt.
 * @throws RangeError when it is damaged, or does not give exactly `outputLength` bytes
 */
export function snappyDecompress(input: Uint8Array, outputLength: number): Uint8Array {
  const output = new Uint8Array(outputLength)
  const end = input.length
  let [at, to] = [0, 0]
  // Its own length: that in the header of the page counts.
  while (at < end && input[at]! > 127) at++
  at++
  while (at < end) {
    const tag = input[at++]!
    const kind = tag & 3
    if (kind === 0) {
      let length = (tag >>> 2) + 1
      if (length > 60) {
        const bytes = length - 60
        length = littleEndian(input, at, bytes) + 1
        at += bytes
      }
      // Not true of a length that is cut off, either.
      if (!(length <= end - at && length <= outputLength - to)) throw new RangeError('damaged')
      copy(input, at, output, to, length)
      at += length
      to += length
      continue
    }
    let [length, offset] = [(tag >>> 2) + 1, 0]
    if (kind === 1) {
      length = ((tag >>> 2) & 7) + 4
      offset = ((tag & 0xe0) << 3) | input[at++]!
    } else {
      const bytes = kind === 2 ? 2 : 4
      offset = littleEndian(input, at, bytes)
      at += bytes
    }
    const isSound = at <= end && offset > 0 && offset <= to && length <= outputLength - to
    if (!isSound) throw new RangeError('damaged')
    copy(output, to - offset, output, to, length)
    to += length
  }
  if (to !== outputLength) throw new RangeError('damaged')
  return output
}

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = bytes[at]!
  if (count > 1) value += bytes[at + 1]! * 0x100
  if (count > 2) value += bytes[at + 2]! * 0x10000
  if (count > 3) value += bytes[at + 3]! * 0x1000000
  return value
}

/** One byte after the other: what is copied within the output may overlap itself. */
function copy(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  for (let i = 0; i < length; i++) target[to + i] = source[from + i]!
}
