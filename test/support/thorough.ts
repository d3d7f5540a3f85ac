/**
 * How thorough a run of the tests is. `npm test` is for who changes something: one way through each mechanism.
 * `npm run test:all` shows every promise: it also runs files named `*.long.test.ts`, and tries more points at which a
 * fault can strike and more cases of a property; `TEST_ALL=1` does the same for any other call of vitest. `FAULT_ALL=1`
 * tries all points and cases.
 */
export function isThorough(): boolean {
  return process.env.TEST_ALL === '1' || EVERYTHING
}

const EVERYTHING = process.env.FAULT_ALL === '1'

export const THOROUGH = isThorough()

/** How often a random test is repeated: `usual` times under `npm run test:all`, `all` times under `FAULT_ALL=1`. */
export function times(usual: number, all: number): number {
  return EVERYTHING ? all : usual
}

/** How many elements of a list `npm run test:all` takes. The others come on other days; `FAULT_DAY` repeats a day. */
const A_DAY = 6
const DAY = Number(process.env.FAULT_DAY ?? Math.floor(Date.now() / 86_400_000))

/** A seed of random cases: under `npm run test:all` another one each day. */
export function seedOf(base: number): number {
  return THOROUGH ? base + DAY : base
}

/** Of costly calls, by their numbers, one of five, others each day; all with `FAULT_ALL=1`. */
export function isOfTheDay(number: number): boolean {
  return EVERYTHING || (number + DAY) % 5 === 0
}

/**
 * About `count` of the elements, evenly spaced, beginning with the first. Under `npm run test:all` the six of the
 * day, or `count` where that is more; all with `FAULT_ALL=1`.
 */
export function some<T>(all: readonly T[], count: number): readonly T[] {
  if (THOROUGH) {
    const days = EVERYTHING ? 1 : Math.ceil(all.length / Math.max(A_DAY, count))
    return all.filter((_, i) => (i + DAY) % days === 0)
  }
  const step = Math.max(1, all.length / count)
  return all.filter((_, i) => i === 0 || Math.floor(i / step) > Math.floor((i - 1) / step))
}

/** How many random cases of a property to try: `some`, a fifth of `all` under `npm run test:all`, all with `FAULT_ALL=1`. */
export function cases(all: number, some = Math.ceil(all / 10)): number {
  if (!THOROUGH) return some
  return EVERYTHING ? all : Math.max(some, Math.ceil(all / 5))
}
