import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** More than half of an answer of the usual size. */
const DEAD_BYTES = 4 << 20

/** Keeps the young generation from growing much. */
export function keepYoungGenerationSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/**
 * Answers come in chunks of 64 kB, which are copied and dead at once. V8 lets 32 MB of them lie about before it
 * collects its young generation; to do it for every answer costs half a millisecond.
 * @returns collects them when there may be enough of them; to be called now and then
 */
export function chunkCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void
  let least = outsideBytes()
  return () => {
    const now = outsideBytes()
    // What a collection finds dead is counted off by the next one.
    least = Math.min(least, now)
    if (now - least < DEAD_BYTES) return
    collect({ type: 'minor' })
    least = outsideBytes()
  }
}

/** Memory of buffers, which lies outside the heap. */
function outsideBytes(): number {
  return getHeapStatistics().external_memory
}
