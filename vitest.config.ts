import { availableParallelism } from 'node:os'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { builtSources, isBuiltSource } from './test/support/built-sources.ts'
import { isThorough } from './test/support/thorough.ts'

/** With `npm run test:all` these test the package as npm installs it, else what was built. */
const END_TO_END = 'test/e2e/**/*.test.ts'
const LONG = 'test/**/*.long.test.ts'

/**
 * A process never forgets a secret that it has learned. Test files share processes, so secrets must be cleared between
 * files. This adds the function that `test/support/clean-process.ts` calls; the product does not have it.
 */
const forgetful = {
  name: 'forgetful',
  transform: (code: string, id: string) =>
    id.endsWith('/src/core/secrets/known-secrets.ts') ? `${code}\n${FORGET}` : undefined,
}
const FORGET = 'export function forgetSecrets() { known.clear() }'

/** Only Vite's own modules can be watched, and have their coverage measured. */
const asModules = !process.argv.includes('run') || process.argv.some((word) => word.startsWith('--coverage'))

export default defineConfig(async ({ mode }): Promise<ViteUserConfig> => {
  // `npm run test:all`. Workers and child processes inherit the environment of this process.
  if (mode === 'all') process.env.TEST_ALL = '1'
  // Modes of files are tested, and a server of another user reads some of them.
  process.umask(0o022)
  const thorough = isThorough()
  return {
    plugins: asModules ? [forgetful] : [await builtSources(forgetful)],
    test: {
      // Many tests wait for a lock, a signal or the rate limit, so one more worker than processors leaves none idle.
      maxWorkers: Math.max(3, availableParallelism() + 1),
      // It is written for bundlers: Node.js does not resolve its folder imports.
      server: { deps: { inline: ['dt-sql-parser'], external: [isBuiltSource] } },
      coverage: {
        provider: 'v8',
        include: ['src/**/*.ts'],
        reporter: ['text-summary', 'json-summary'],
        reportOnFailure: true,
      },
      // Tests start many processes, on machines that may be busy.
      testTimeout: thorough ? 900_000 : 300_000,
      hookTimeout: 180_000,
      // A busy machine takes longer than the second of Vitest.
      expect: { poll: { timeout: 60_000, interval: 5 } },
      // All files of a worker share its process, so that the sources are loaded once. With a heap that begins large the
      // collector takes a seventh less of a file's processor time.
      isolate: false,
      execArgv: ['--initial-heap-size=600'],
      setupFiles: ['test/support/clean-process.ts'],
      // Vitest begins with the files that took longest last time. It keeps the times in node_modules/.vite.
      projects: [
        ...(thorough ? [INSTALLED] : []),
        {
          extends: true,
          test: {
            name: 'shared',
            include: ['test/**/*.test.ts'],
            exclude: ['**/node_modules/**', thorough ? END_TO_END : LONG],
            globalSetup: ['test/support/exports-folder.ts', 'test/support/postgres/shared.ts'],
          },
        },
      ],
    },
  }
})

const INSTALLED = {
  extends: true as const,
  test: {
    name: 'installed',
    include: [END_TO_END],
    globalSetup: ['test/support/exports-folder.ts', 'test/support/installed.ts'],
    setupFiles: ['test/support/wait-for-package.ts'],
  },
}
