/**
 * Mixes a position, a field number and a seed into 32 well-spread bits, as an unsigned integer.
 * Every property of a record comes from this, so that record n costs the same wherever it lies and
 * nothing has to be kept in memory. The constants are those of MurmurHash3's finalizer.
 */
export function hash32(seed: number, position: number, field: number): number {
  let h = seed ^ Math.imul(position, 0x9e3779b1) ^ Math.imul(field + 1, 0x85ebca77)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** The same as a fraction in [0, 1). */
export function fraction(seed: number, position: number, field: number): number {
  return hash32(seed, position, field) / 0x1_0000_0000
}

/** Turns a seed as people write it (number or text) into 32 bits. FNV-1a. */
export function seedBits(seed: number | string): number {
  const text = String(seed)
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return hash32(h, 0, 0)
}
