import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'
import { isThorough } from './test/support/thorough.ts'

const END_TO_END = 'test/e2e/**/*.test.ts'
/** What can be seen nowhere but where npm has put the package. */
const INSTALLED = [
  'test/e2e/the-package-is-whole.test.ts',
  'test/e2e/every-command-works-where-it-is-installed.test.ts',
]
/** What a process keeps for as long as it lives, such as the secrets that it knows, changes what these files see. */
const ALONE = ['test/core/known-secrets.test.ts', 'test/run/hidden-identities-are-not-repeated.test.ts']
const LONG = 'test/**/*.long.test.ts'

export default defineConfig(({ mode }) => {
  // `npm run test:all`; workers and what they start have the environment of this process.
  if (mode === 'all') process.env.TEST_ALL = '1'
  const left = isThorough() ? [] : [LONG]
  const installed = isThorough() ? [END_TO_END] : INSTALLED
  return {
    test: {
      // Many tests wait for a lock, a signal or a pace, so one worker more than there are processors leaves none idle.
      maxWorkers: Math.max(3, availableParallelism() + 1),
      sequence: { sequencer: LongestFirst },
      // It is written for bundlers: Node.js alone does not find its folders.
      server: { deps: { inline: ['dt-sql-parser'] } },
      coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['text-summary', 'json-summary'] },
      testTimeout: 180_000,
      hookTimeout: 180_000,
      // Files share the process of a worker, which loads the sources once.
      isolate: false,
      setupFiles: ['test/support/environment.ts'],
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
          test: {
            name: 'shared',
            include: ['test/**/*.test.ts'],
            exclude: [...installed, ...ALONE, ...left],
            globalSetup: ['test/support/postgres/shared.ts'],
          },
        },
        { extends: true, test: { name: 'alone', include: ALONE, isolate: true } },
      ],
    },
  }
})
