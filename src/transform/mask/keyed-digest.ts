import { createHash, createHmac, createSecretKey } from 'node:crypto'

/** Characters of a digest: SHA-256 in hex. */
export const DIGEST_LENGTH = 64

/** Writes a digest over the text that begins at `start`, and returns where it ends. */
export type KeyedDigest = (bytes: Buffer, start: number, end: number) => number

/** With the padding that says where the text ends, longer ones (their prefix included) need more than one block. */
const ONE_BLOCK = 55
const BLOCK_BYTES = 64

/**
 * HMAC-SHA256 in hex, in place of the text. It is node:crypto's, but for texts of up to 55 bytes, as nearly all
 * secrets and identities are: making and reading an Hmac object costs several times what there is to compute.
 * The two hashes of an HMAC each begin with a block that depends on the key alone, whose outcome is kept, so a
 * short text costs two blocks (FIPS 180-4, RFC 2104).
 * @param prefix goes before every text, in ASCII: what has different ones never compares
 */
export function keyedDigest(key: Uint8Array, prefix: string): KeyedDigest {
  const secretKey = createSecretKey(key)
  const inner = afterKeyBlock(key, 0x36)
  const outer = afterKeyBlock(key, 0x5c)
  const state = new Int32Array(8)
  const before = Buffer.from(prefix, 'latin1')
  const prefixWords = new Int32Array(15)
  for (const [i, byte] of before.entries()) prefixWords[i >> 2]! |= byte << (24 - 8 * (i & 3))

  return (bytes, start, end) => {
    const length = before.length + end - start
    if (length > ONE_BLOCK) {
      const digest = createHmac('sha256', secretKey)
        .update(before)
        .update(bytes.subarray(start, end))
        .digest('hex')
      return start + bytes.write(digest, start, 'latin1')
    }
    words.set(prefixWords)
    const shift = start - before.length
    for (let i = before.length; i < length; i++) words[i >> 2]! |= bytes[shift + i]! << (24 - 8 * (i & 3))
    words[length >> 2]! |= 0x80 << (24 - 8 * (length & 3))
    words[15] = 8 * (BLOCK_BYTES + length)
    state.set(inner)
    compress(state)
    words.set(state)
    words[8] = 0x80 << 24
    words.fill(0, 9, 15)
    words[15] = 8 * (BLOCK_BYTES + 32)
    state.set(outer)
    compress(state)
    return writeHex(state, bytes, start)
  }
}

/** The state of a hash after the block that is the key, combined with `pad` in every byte. */
function afterKeyBlock(key: Uint8Array, pad: number): Int32Array {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(key.length > BLOCK_BYTES ? createHash('sha256').update(key).digest() : key)
  for (let i = 0; i < 16; i++) words[i] = block.readInt32BE(4 * i) ^ (pad * 0x01010101)
  const state = Int32Array.from(START)
  compress(state)
  return state
}

const HEX = Buffer.from('0123456789abcdef')

function writeHex(state: Int32Array, to: Buffer, start: number): number {
  let at = start
  for (const word of state)
    for (let shift = 28; shift >= 0; shift -= 4) to[at++] = HEX[(word >>> shift) & 15]!
  return at
}

/** The message schedule; its first sixteen words are the block. */
const words = new Int32Array(64)

/** Takes the block in `words` into the state. */
function compress(state: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15]!
    const y = words[i - 2]!
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
    words[i] = words[i - 16]! + s0 + words[i - 7]! + s1
  }
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + words[i]!) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0]! += a
  state[1]! += b
  state[2]! += c
  state[3]! += d
  state[4]! += e
  state[5]! += f
  state[6]! += g
  state[7]! += h
}

// FIPS 180-4, 5.3.3: the first 32 bits of the fractional parts of the square roots of the first 8 primes.
const START = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]

// FIPS 180-4, 4.2.2: those of the cube roots of the first 64 primes.
const ROUNDS = Int32Array.of(
  0x428a2f98,
  0x71374491,
  0xb5c0fbcf,
  0xe9b5dba5,
  0x3956c25b,
  0x59f111f1,
  0x923f82a4,
  0xab1c5ed5,
  0xd807aa98,
  0x12835b01,
  0x243185be,
  0x550c7dc3,
  0x72be5d74,
  0x80deb1fe,
  0x9bdc06a7,
  0xc19bf174,
  0xe49b69c1,
  0xefbe4786,
  0x0fc19dc6,
  0x240ca1cc,
  0x2de92c6f,
  0x4a7484aa,
  0x5cb0a9dc,
  0x76f988da,
  0x983e5152,
  0xa831c66d,
  0xb00327c8,
  0xbf597fc7,
  0xc6e00bf3,
  0xd5a79147,
  0x06ca6351,
  0x14292967,
  0x27b70a85,
  0x2e1b2138,
  0x4d2c6dfc,
  0x53380d13,
  0x650a7354,
  0x766a0abb,
  0x81c2c92e,
  0x92722c85,
  0xa2bfe8a1,
  0xa81a664b,
  0xc24b8b70,
  0xc76c51a3,
  0xd192e819,
  0xd6990624,
  0xf40e3585,
  0x106aa070,
  0x19a4c116,
  0x1e376c08,
  0x2748774c,
  0x34b0bcb5,
  0x391c0cb3,
  0x4ed8aa4a,
  0x5b9cca4f,
  0x682e6ff3,
  0x748f82ee,
  0x78a5636f,
  0x84c87814,
  0x8cc70208,
  0x90befffa,
  0xa4506ceb,
  0xbef9a3f7,
  0xc67178f2,
)
