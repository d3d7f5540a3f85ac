import { version } from '../package/index.ts'

/** Answers `--version`, which needs nothing of all the rest. */
export function printVersion(): void {
  process.stdout.write(`${version}\n`)
}
