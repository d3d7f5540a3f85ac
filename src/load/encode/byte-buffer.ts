import { ExportError } from '../../core/index.ts'

/** Lengths in Parquet are signed 32-bit integers. */
const MAX_BYTES = 2 ** 31 - 1

/** Hot loops call `reserve`, which may replace `bytes`, then write there from `length` on and set `length`. */
export class ByteBuffer {
  bytes: Buffer
  length = 0

  constructor(capacity = 1 << 16) {
    this.bytes = Buffer.from(new ArrayBuffer(capacity))
  }

  reserve(extra: number): void {
    const needed = this.length + extra
    if (needed <= this.bytes.length) return
    checkSize(needed)
    const grown = Buffer.from(new ArrayBuffer(Math.max(needed, Math.min(this.bytes.length * 2, MAX_BYTES))))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
  }

  append(source: Uint8Array): void {
    const { length } = source
    this.reserve(length)
    // For a few bytes, a loop is faster than a call.
    if (length > 24) this.bytes.set(source, this.length)
    else for (let i = 0, at = this.length; i < length; i++) this.bytes[at++] = source[i]!
    this.length += length
  }

  /** Unsigned LEB128 of an integer below 2^53. */
  appendVarint(value: number): void {
    this.reserve(10)
    while (value >= 0x80) {
      this.bytes[this.length++] = (value % 0x80) | 0x80
      value = Math.floor(value / 0x80)
    }
    this.bytes[this.length++] = value
  }

  appendUint32(value: number): void {
    this.reserve(4)
    this.length = this.bytes.writeUInt32LE(value, this.length)
  }

  /** The written bytes, as a view that the next write may overwrite. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }
}

/** @throws ExportError `data` when a row group would have more bytes than its format allows */
export function checkSize(bytes: number): void {
  if (bytes <= MAX_BYTES) return
  throw new ExportError({
    kind: 'data',
    what: 'A row group takes more than 2 GB',
    where: '',
    next: 'Request smaller pages (extract.page_size), or leave long columns out (transform.columns).',
  })
}
