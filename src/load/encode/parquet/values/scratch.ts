/*
 * Scratch memory for encoding one column chunk, reused for the next. Otherwise, each row group would leave about ten
 * megabytes of arrays, which are garbage-collected late. The arrays are not cleared, and are valid until `freeScratch`.
 */

/** Enough for the largest column of a row group of usual rows. The unused part takes no memory. */
const MIN_BYTES = 8 << 20
/** Larger column chunks allocate the rest. */
const MAX_KEPT_BYTES = 32 << 20

let memory = new ArrayBuffer(0)
let taken = 0

/** Frees all arrays, and makes room for what did not fit since the last call. */
export function freeScratch(): void {
  if (taken > memory.byteLength && memory.byteLength < MAX_KEPT_BYTES) {
    const wanted = Math.max(MIN_BYTES, 2 ** Math.ceil(Math.log2(taken)))
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
