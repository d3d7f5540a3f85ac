import type { TextVector } from './record-batch.ts'

/** Lookups read far fewer slots, unless someone chose strings whose hashes collide. Then the dictionary is full. */
const MAX_PROBES = 256

/** Codes have at most 24 bits. */
const MAX_COUNT = 1 << 24

const FIRST_SLOTS = 1 << 7
const FIRST_BYTES = 1 << 12
/** Larger memory is not kept for the next column. */
const MAX_KEPT_SLOTS = 1 << 18
const MAX_KEPT_BYTES = 1 << 23

/** Distinct strings. The code of a string is its index, in the order of first use. */
export class TextDictionary {
  count = 0
  byteLength = 0
  #bytes = new Uint8Array(FIRST_BYTES)
  #offsets = new Uint32Array(FIRST_SLOTS / 2)
  #hashes = new Int32Array(FIRST_SLOTS / 2 - 1)
  /** Hash table with open addressing. A slot has a code + 1; 0: empty. */
  #table = new Uint32Array(FIRST_SLOTS)

  /** Removes all strings. The result of an earlier `texts` is invalid then. */
  clear(): void {
    this.count = 0
    this.byteLength = 0
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = new Uint8Array(FIRST_BYTES)
    if (this.#table.length > MAX_KEPT_SLOTS) {
      this.#offsets = new Uint32Array(FIRST_SLOTS / 2)
      this.#hashes = new Int32Array(FIRST_SLOTS / 2 - 1)
      this.#table = new Uint32Array(FIRST_SLOTS)
    } else this.#table.fill(0)
  }

  /** Writes codes to `codeOf`, -1 for nulls. @returns false when the dictionary is full */
  internAll({ offsets, bytes, valid }: TextVector, from: number, to: number, codeOf: Int32Array): boolean {
    for (let i = from; i < to; i++) {
      codeOf[i - from] = -1
      if (valid !== null && valid[i] === 0) continue
      const code = this.intern(bytes, offsets[i]!, offsets[i + 1]!)
      if (code < 0) return false
      codeOf[i - from] = code
    }
    return true
  }

  /** The code of the string `source[from..to)`; -1 when it is new and the dictionary is full. */
  intern(source: Uint8Array, from: number, to: number): number {
    const hash = hashOf(source, from, to)
    const mask = this.#table.length - 1
    let slot = hash & mask
    for (let probes = 0; probes < MAX_PROBES; probes++) {
      const code = this.#table[slot]! - 1
      if (code < 0) return this.#add(source, from, to, hash, slot)
      if (this.#hashes[code] === hash && this.#equals(code, source, from, to)) return code
      slot = (slot + 1) & mask
    }
    return -1
  }

  /** All strings, by code. Valid until `clear`. */
  texts(): TextVector {
    return {
      kind: 'text',
      offsets: this.#offsets.subarray(0, this.count + 1),
      bytes: this.#bytes.subarray(0, this.byteLength),
      valid: null,
    }
  }

  #equals(code: number, source: Uint8Array, from: number, to: number): boolean {
    const start = this.#offsets[code]!
    if (this.#offsets[code + 1]! - start !== to - from) return false
    const bytes = this.#bytes
    for (let i = 0; i < to - from; i++) if (bytes[start + i] !== source[from + i]) return false
    return true
  }

  #add(source: Uint8Array, from: number, to: number, hash: number, slot: number): number {
    const end = this.byteLength + to - from
    if (this.count === MAX_COUNT) return -1
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, this.#bytes.length * 2))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    const bytes = this.#bytes
    for (let i = from, at = this.byteLength; i < to; i++) bytes[at++] = source[i]!
    const code = this.count++
    this.byteLength = end
    this.#offsets[code + 1] = end
    this.#hashes[code] = hash
    this.#table[slot] = code + 1
    if (this.count === this.#hashes.length) this.#grow()
    return code
  }

  #grow(): void {
    const size = this.#table.length * 2
    const offsets = new Uint32Array(size / 2)
    offsets.set(this.#offsets)
    const hashes = new Int32Array(size / 2 - 1)
    hashes.set(this.#hashes)
    const table = new Uint32Array(size)
    for (let code = 0; code < this.count; code++) {
      let slot = hashes[code]! & (size - 1)
      while (table[slot] !== 0) slot = (slot + 1) & (size - 1)
      table[slot] = code + 1
    }
    this.#offsets = offsets
    this.#hashes = hashes
    this.#table = table
  }
}

/** FNV over words of four bytes, mixed at the end so that the low bits depend on all of them. */
function hashOf(source: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5 ^ (to - from)
  let at = from
  for (; at + 4 <= to; at += 4) {
    const word = source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24)
    hash = Math.imul(hash ^ word, 0x01000193)
    hash ^= hash >>> 15
  }
  for (; at < to; at++) hash = Math.imul(hash ^ source[at]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}
