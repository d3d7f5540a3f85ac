// The constants of the specification as upper and lower halves. They are signed, so that V8 keeps them in registers.
const PRIME1_HIGH = 0x9e3779b1 | 0
const PRIME1_LOW = 0x85ebca87 | 0
const PRIME2_HIGH = 0xc2b2ae3d | 0
const PRIME2_LOW = 0x27d4eb4f
const PRIME3_HIGH = 0x165667b1
const PRIME3_LOW = 0x9e3779f9 | 0
const PRIME4_HIGH = 0x85ebca77 | 0
const PRIME4_LOW = 0xc2b2ae63 | 0
const PRIME5_HIGH = 0x27d4eb2f
const PRIME5_LOW = 0x165667c5

/** The accumulator, as upper and lower half. The functions below change it. */
let high = 0
let low = 0

/** The four lanes of long inputs: upper half, lower half. */
const lanes = new Int32Array(8)
/** Initial values of the lanes: PRIME1 + PRIME2, PRIME2, 0 and -PRIME1. */
// biome-ignore format: four pairs
const LANES = Int32Array.of(
  0x60ea27ee, 0xadc0b5d6, 0xc2b2ae3d, 0x27d4eb4f, 0, 0, 0x61c8864e, 0x7a143579,
)

/**
 * xxHash64 with seed 0 of the bytes `[from, to)`, as two halves. Parquet's bloom filters use this hash.
 * Plain 32-bit arithmetic is many times faster than BigInt here.
 * Source: Cyan4973/xxHash, xxhash_spec.md.
 */
export function xxhash64(view: DataView, from: number, to: number): { high: number; low: number } {
  let at = from
  if (to - from >= 32) {
    lanes.set(LANES)
    for (; at + 32 <= to; at += 32) for (let lane = 0; lane < 8; lane += 2) mixIn(lane, view, at + lane * 4)
    joinLanes()
  } else {
    set(PRIME5_HIGH, PRIME5_LOW)
  }
  add(0, to - from)
  for (; at + 8 <= to; at += 8) {
    const h = high
    const l = low
    set(view.getInt32(at + 4, true), view.getInt32(at, true))
    round()
    set(high ^ h, low ^ l)
    rotate(27)
    multiply(PRIME1_HIGH, PRIME1_LOW)
    add(PRIME4_HIGH, PRIME4_LOW)
  }
  if (at + 4 <= to) {
    xorMultiple(view.getInt32(at, true), PRIME1_HIGH, PRIME1_LOW)
    rotate(23)
    multiply(PRIME2_HIGH, PRIME2_LOW)
    add(PRIME3_HIGH, PRIME3_LOW)
    at += 4
  }
  for (; at < to; at++) {
    xorMultiple(view.getUint8(at), PRIME5_HIGH, PRIME5_LOW)
    rotate(11)
    multiply(PRIME1_HIGH, PRIME1_LOW)
  }
  low ^= high >>> 1 // the number shifted right by 33
  multiply(PRIME2_HIGH, PRIME2_LOW)
  set(high ^ (high >>> 29), low ^ ((low >>> 29) | (high << 3)))
  multiply(PRIME3_HIGH, PRIME3_LOW)
  low ^= high
  return { high: high >>> 0, low: low >>> 0 }
}

function mixIn(lane: number, view: DataView, at: number): void {
  set(view.getInt32(at + 4, true), view.getInt32(at, true))
  multiply(PRIME2_HIGH, PRIME2_LOW)
  add(lanes[lane]!, lanes[lane + 1]!)
  rotate(31)
  multiply(PRIME1_HIGH, PRIME1_LOW)
  lanes[lane] = high
  lanes[lane + 1] = low
}

function joinLanes(): void {
  let h = 0
  let l = 0
  for (const [lane, bits] of [
    [0, 1],
    [2, 7],
    [4, 12],
    [6, 18],
  ] as const) {
    set(lanes[lane]!, lanes[lane + 1]!)
    rotate(bits)
    add(h, l)
    h = high
    l = low
  }
  for (let lane = 0; lane < 8; lane += 2) {
    set(lanes[lane]!, lanes[lane + 1]!)
    round()
    set(high ^ h, low ^ l)
    multiply(PRIME1_HIGH, PRIME1_LOW)
    add(PRIME4_HIGH, PRIME4_LOW)
    h = high
    l = low
  }
}

/** One round over an empty lane. */
function round(): void {
  multiply(PRIME2_HIGH, PRIME2_LOW)
  rotate(31)
  multiply(PRIME1_HIGH, PRIME1_LOW)
}

function xorMultiple(value: number, factorHigh: number, factorLow: number): void {
  const h = high
  const l = low
  set(0, value)
  multiply(factorHigh, factorLow)
  set(high ^ h, low ^ l)
}

function set(h: number, l: number): void {
  high = h | 0
  low = l | 0
}

function add(h: number, l: number): void {
  const sum = (low >>> 0) + (l >>> 0)
  high = (high + h + (sum > 0xffffffff ? 1 : 0)) | 0
  low = sum | 0
}

/** Rotates left by 1 to 31 bits. */
function rotate(bits: number): void {
  const h = (high << bits) | (low >>> (32 - bits))
  low = (low << bits) | (high >>> (32 - bits))
  high = h
}

/** Schoolbook multiplication of the lower halves, 16 bits at a time. The upper halves only affect the upper half. */
function multiply(factorHigh: number, factorLow: number): void {
  const a0 = low & 0xffff
  const a1 = low >>> 16
  const b0 = factorLow & 0xffff
  const b1 = factorLow >>> 16
  const low0 = Math.imul(a0, b0)
  const cross1 = Math.imul(a0, b1)
  const cross2 = Math.imul(a1, b0)
  const middle = (low0 >>> 16) + (cross1 & 0xffff) + (cross2 & 0xffff)
  high =
    (Math.imul(a1, b1) +
      (cross1 >>> 16) +
      (cross2 >>> 16) +
      (middle >>> 16) +
      Math.imul(high, factorLow) +
      Math.imul(low, factorHigh)) |
    0
  low = (low0 & 0xffff) | (middle << 16)
}
