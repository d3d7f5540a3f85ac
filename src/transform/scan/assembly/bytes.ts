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
