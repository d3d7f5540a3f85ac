import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const END_TO_END = 'test/e2e/**/*.test.ts'

export default defineConfig({
  test: {
    // Most tests wait for child processes or the disk, so one worker a processor leaves none idle.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: { name: 'installed', include: [END_TO_END], globalSetup: 'test/support/installed.ts' },
      },
      {
        extends: true,
        test: { name: 'built', include: ['test/**/*.test.ts'], exclude: [END_TO_END] },
      },
    ],
  },
})
