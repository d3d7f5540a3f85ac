/**
 * How thorough a run of the tests is. `npm test` shows every promise once; `npm run test:all` tries everything: files
 * named `*.long.test.ts`, every point at which a fault can strike, all cases of a property. `TEST_ALL=1` and
 * `FAULT_ALL=1` do the same for any other call of vitest.
 */
export function isThorough(): boolean {
  return process.env.TEST_ALL === '1' || process.env.FAULT_ALL === '1'
}

export const THOROUGH = isThorough()

/** How often a random test is repeated: `usual` times under `npm run test:all`, `all` times under `FAULT_ALL=1`. */
export function times(usual: number, all: number): number {
  return process.env.FAULT_ALL === '1' ? all : usual
}

/** Of longer lists `npm run test:all` takes a third, another one each day. `FAULT_DAY` repeats that of a day. */
const LONG = 30
const SHARE = 3
const DAY = Number(process.env.FAULT_DAY ?? Math.floor(Date.now() / 86_400_000))

/**
 * About `count` of the elements, evenly spaced, beginning with the first. Where everything is tried, all of them; of
 * more than 30 the third of the day, unless `FAULT_ALL=1` is set.
 */
export function some<T>(all: readonly T[], count: number): readonly T[] {
  if (THOROUGH) {
    const isShared = process.env.FAULT_ALL !== '1' && all.length > LONG
    return isShared ? all.filter((_, i) => (i + DAY) % SHARE === 0) : all
  }
  const step = Math.max(1, all.length / count)
  return all.filter((_, i) => i === 0 || Math.floor(i / step) > Math.floor((i - 1) / step))
}

/** How many cases of a property to try: `all` where everything is tried, else `some`. */
export function cases(all: number, some = Math.ceil(all / 10)): number {
  return THOROUGH ? all : some
}
