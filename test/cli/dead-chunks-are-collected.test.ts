import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { chunkCollector } from '../../src/cli/heap.ts'

const MB = 1 << 20
const CHUNK = 64 << 10

it('chunks that are dead do not pile up', async () => {
  const collect = chunkCollector()
  const start = bufferBytes()
  for (let round = 0; round < 20; round++) {
    leaveChunks(4 * MB)
    collect()
    await soon(() => bufferBytes() < start + 12 * MB)
  }
})

function bufferBytes(): number {
  return process.memoryUsage().arrayBuffers
}

function leaveChunks(bytes: number): void {
  for (let left = bytes; left > 0; left -= CHUNK) new Uint8Array(CHUNK).fill(1)
}

/** Memory is given back by another thread. */
async function soon(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !holds(); tries++) await setTimeout(5)
  expect(holds()).toBe(true)
}
