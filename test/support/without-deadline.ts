import { join } from 'node:path'

/**
 * The environment of a command whose deadlines after a signal never come: the nine seconds after which the process exits
 * without a summary, or the five after which it aborts its requests.
 */
export function withoutDeadline(...deadlines: readonly (5000 | 9000)[]): Record<string, string> {
  const NO_DEADLINE = join(import.meta.dirname, 'no-deadline.mjs')
  return { NODE_OPTIONS: `--import ${NO_DEADLINE}`, NO_DEADLINE_MS: deadlines.join() }
}
