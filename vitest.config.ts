import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { isThorough } from './test/support/thorough.ts'

const END_TO_END = 'test/e2e/**/*.test.ts'
/** What can be seen nowhere but where npm has put the package. */
const INSTALLED = [
  'test/e2e/the-package-is-whole.test.ts',
  'test/e2e/every-command-works-where-it-is-installed.test.ts',
]
/** Stages that keep nothing for their process: their files need none of their own, and load the sources once a worker. */
const STAGES = ['core', 'disk', 'load', 'plan', 'report', 'sandbox', 'state', 'transform']
const LONG = 'test/**/*.long.test.ts'

export default defineConfig(({ mode }) => {
  // `npm run test:all`; workers and what they start have the environment of this process.
  if (mode === 'all') process.env.TEST_ALL = '1'
  const left = isThorough() ? [] : [LONG]
  const stages = STAGES.map((stage) => `test/${stage}/**/*.test.ts`)
  const installed = isThorough() ? [END_TO_END] : INSTALLED
  return {
    test: {
      // Many tests wait for a lock, a signal or a pace, so one worker more than there are processors leaves none idle.
      maxWorkers: Math.max(3, availableParallelism() + 1),
      // It is written for bundlers: Node.js alone does not find its folders.
      server: { deps: { inline: ['dt-sql-parser'] } },
      coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['text-summary', 'json-summary'] },
      testTimeout: 180_000,
      hookTimeout: 180_000,
      projects: [
        {
          extends: true,
          test: {
            name: 'installed',
            include: installed,
            exclude: left,
            globalSetup: ['test/support/installed.ts'],
          },
        },
        {
          extends: true,
          test: { name: 'stages', include: stages, exclude: left, isolate: false },
        },
        {
          extends: true,
          test: {
            name: 'built',
            include: ['test/**/*.test.ts'],
            exclude: [...installed, ...stages, ...left],
            globalSetup: ['test/support/postgres/shared.ts'],
          },
        },
      ],
    },
  }
})
