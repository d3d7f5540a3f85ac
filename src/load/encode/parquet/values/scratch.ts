/*
 * Memory for what is needed while one column chunk is made, and used again for the next: else every row group would
 * leave some ten megabytes of arrays behind, which wait long to be collected. Whatever is taken holds anything, and
 * is good until `freeScratch`.
 */

/** What a row group of usual rows needs for its largest column. What is not used of it takes no memory. */
const LEAST_BYTES = 8 << 20
/** A column chunk beyond the usual takes fresh memory for the rest. */
const MAX_KEPT_BYTES = 32 << 20

let memory = new ArrayBuffer(0)
let taken = 0

/** Begins anew; makes room for what did not fit the last time. */
export function freeScratch(): void {
  if (taken > memory.byteLength && memory.byteLength < MAX_KEPT_BYTES) {
    const wanted = Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(taken)))
    memory = new ArrayBuffer(Math.min(MAX_KEPT_BYTES, wanted))
  }
  taken = 0
}

export function scratchBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(...take(length), length)
}

export function scratchUint32(length: number): Uint32Array<ArrayBuffer> {
  return new Uint32Array(...take(4 * length), length)
}

export function scratchFloat64(length: number): Float64Array<ArrayBuffer> {
  return new Float64Array(...take(8 * length), length)
}

function take(bytes: number): [ArrayBuffer, number] {
  const start = taken
  taken += Math.ceil(bytes / 8) * 8
  return taken <= memory.byteLength ? [memory, start] : [new ArrayBuffer(bytes), 0]
}
