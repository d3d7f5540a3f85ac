import { version } from '../package/index.ts'

/** Handles `--version`, which needs no other module. */
export function printVersion(): void {
  process.stdout.write(`${version}\n`)
}
