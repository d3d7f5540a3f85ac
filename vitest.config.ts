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
const LONG = 'test/**/*.long.test.ts'

/**
 * A process knows a secret for as long as it lives. Files share processes, so between two of them it forgets: this adds the
 * function that `test/support/clean-process.ts` calls, in tests alone.
 */
const forgetful = {
  name: 'forgetful',
  transform: (code: string, id: string) =>
    id.endsWith('/src/core/secrets/known-secrets.ts') ? `${code}\n${FORGET}` : undefined,
}
const FORGET = `export function forgetSecrets() {
  known.clear()
  needles.clear()
  bare.length = 0
}`

export default defineConfig(({ mode }) => {
  // `npm run test:all`; workers and what they start have the environment of this process.
  if (mode === 'all') process.env.TEST_ALL = '1'
  const left = isThorough() ? [] : [LONG]
  const installed = isThorough() ? [END_TO_END] : INSTALLED
  return {
    plugins: [forgetful],
    test: {
      // Many tests wait for a lock, a signal or a pace, so one worker more than there are processors leaves none idle.
      maxWorkers: Math.max(3, availableParallelism() + 1),
      sequence: { sequencer: LongestFirst },
      // It is written for bundlers: Node.js alone does not find its folders.
      server: { deps: { inline: ['dt-sql-parser'] } },
      coverage: {
        provider: 'v8',
        include: ['src/**/*.ts'],
        reporter: ['text-summary', 'json-summary'],
        reportOnFailure: true,
      },
      testTimeout: 180_000,
      hookTimeout: 180_000,
      // Files share the process of a worker, which loads the sources once.
      isolate: false,
      setupFiles: ['test/support/clean-process.ts'],
      projects: [
        {
          extends: true,
          test: {
            name: 'installed',
            include: installed,
            exclude: left,
            globalSetup: ['test/support/exports-folder.ts', 'test/support/installed.ts'],
            setupFiles: ['test/support/wait-for-package.ts'],
          },
        },
        {
          extends: true,
          test: {
            name: 'shared',
            include: ['test/**/*.test.ts'],
            exclude: [...installed, ...left],
            globalSetup: ['test/support/exports-folder.ts', 'test/support/postgres/shared.ts'],
          },
        },
      ],
    },
  }
})
