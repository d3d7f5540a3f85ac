import { ARENA, ARENA_BYTES, KNOWN, MAX_SOURCES, SLOT_COUNT, SLOTS } from './layout'

// A page says the same few hundred `source` objects thousands of times: most of its bytes. JavaScript parses each once;
// from then on its bytes are compared. The arena holds them, each followed by the text of its `id`. A hash of the first
// PREFIX bytes finds them: no JSON object is the beginning of another. When it is full, everything is forgotten.

/** Beyond the `id` in every order of fields that serializers choose. Smaller objects are not worth knowing. */
const PREFIX: usize = 96
/** Slots that are looked at. Objects of which more have one hash push each other out. */
const MAX_PROBES: usize = 16

let used: usize = 0
let count: usize = 0

/** @returns the number of the known source whose bytes are at `at`, or -1 */
export function find(at: usize): i32 {
  const key = hash(at)
  for (let probe: usize = 0; probe < MAX_PROBES; probe++) {
    const slot = slotOf(key, probe)
    const entry = load<u32>(slot, 4)
    if (entry === 0) return -1
    if (load<u32>(slot) !== key) continue
    const known = KNOWN + 16 * (entry - 1)
    if (areSame(at, load<u32>(known), load<u32>(known, 4))) return <i32>(entry - 1)
  }
  return -1
}

export function lengthOf(source: i32): usize {
  return load<u32>(KNOWN + 16 * source, 4)
}

export function isIdOf(source: i32, start: usize, end: usize): bool {
  const known = KNOWN + 16 * source
  return <usize>load<u32>(known, 12) === end - start && areSame(start, load<u32>(known, 8), end - start)
}

/**
 * @param idLength bytes of the text of its `id`, to be written behind it in the arena
 * @returns its number, or -1 when it is not worth knowing; 0 means that those before are forgotten
 */
export function learn(start: usize, length: usize, idLength: usize): i32 {
  const needed = length + idLength
  if (length < PREFIX || needed > ARENA_BYTES) return -1
  if (used + needed > ARENA_BYTES || count >= MAX_SOURCES) forget()
  const to = ARENA + used
  memory.copy(to, start, length)
  const known = KNOWN + 16 * count
  store<u32>(known, to)
  store<u32>(known, length, 4)
  store<u32>(known, to + length, 8)
  store<u32>(known, idLength, 12)
  const key = hash(start)
  let probe: usize = 0
  while (probe < MAX_PROBES && load<u32>(slotOf(key, probe), 4) !== 0) probe++
  const slot = slotOf(key, probe < MAX_PROBES ? probe : count % MAX_PROBES)
  store<u32>(slot, key)
  store<u32>(slot, count + 1, 4)
  used += needed
  count++
  return <i32>(count - 1)
}

export function idOf(source: i32): usize {
  return load<u32>(KNOWN + 16 * source, 8)
}

function forget(): void {
  memory.fill(SLOTS, 0, 8 * SLOT_COUNT)
  used = 0
  count = 0
}

function slotOf(key: u32, probe: usize): usize {
  return SLOTS + 8 * ((<usize>key + probe) & (SLOT_COUNT - 1))
}

function hash(at: usize): u32 {
  // Four lanes, because the steps of one wait for each other.
  let a: u64 = 0
  let b: u64 = 0
  let c: u64 = 0
  let d: u64 = 0
  for (let i: usize = 0; i < PREFIX; i += 32) {
    a = rotl(a ^ load<u64>(at + i), 29) * 0x9e3779b97f4a7c15
    b = rotl(b ^ load<u64>(at + i, 8), 31) * 0xbf58476d1ce4e5b9
    c = rotl(c ^ load<u64>(at + i, 16), 33) * 0x94d049bb133111eb
    d = rotl(d ^ load<u64>(at + i, 24), 37) * 0xd6e8feb86659fd93
  }
  const mixed = (a ^ rotl(b, 17) ^ rotl(c, 31) ^ rotl(d, 47)) * 0x9e3779b97f4a7c15
  return <u32>(mixed >> 32)
}

/** Looks at up to fifteen bytes behind both. */
export function areSame(a: usize, b: usize, length: usize): bool {
  let i: usize = 0
  for (; i + 64 <= length; i += 64) {
    const first = v128.or(
      v128.xor(v128.load(a + i), v128.load(b + i)),
      v128.xor(v128.load(a + i, 16), v128.load(b + i, 16)),
    )
    const second = v128.or(
      v128.xor(v128.load(a + i, 32), v128.load(b + i, 32)),
      v128.xor(v128.load(a + i, 48), v128.load(b + i, 48)),
    )
    if (v128.any_true(v128.or(first, second))) return false
  }
  for (; i + 16 <= length; i += 16) {
    if (v128.any_true(v128.xor(v128.load(a + i), v128.load(b + i)))) return false
  }
  const same = i8x16.bitmask(i8x16.eq(v128.load(a + i), v128.load(b + i)))
  return (~same & ((1 << (<i32>(length - i))) - 1)) === 0
}
