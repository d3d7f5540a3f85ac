import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Most tests wait for child processes or the disk, so one worker a processor leaves none idle.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})
