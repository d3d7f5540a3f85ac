import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const END_TO_END = 'test/e2e/**/*.test.ts'

export default defineConfig({
  test: {
    // Many tests wait for a lock, a signal or a pace, so one worker more than there are processors leaves none idle.
    maxWorkers: Math.max(3, availableParallelism() + 1),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: { name: 'installed', include: [END_TO_END], globalSetup: 'test/support/installed.ts' },
      },
      {
        extends: true,
        test: {
          name: 'built',
          include: ['test/**/*.test.ts'],
          exclude: [END_TO_END],
          globalSetup: 'test/support/postgres/shared.ts',
        },
      },
    ],
  },
})
