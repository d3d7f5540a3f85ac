import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { jsonLines } from '../../support/run-cli.ts'

/**
 * The rows of each statement, by ClickHouse in a process of its own, which reads files below the folder. It is installed
 * by `npm run test:all`, or by `npm install --no-save` in this folder.
 * @param tables a folder where the tables stay for the next process
 */
export async function ask(
  folder: string,
  statements: readonly string[],
  ...tables: readonly string[]
): Promise<unknown[][][]> {
  const words = [join(import.meta.dirname, 'query.mjs'), ...tables]
  const child = spawn(process.execPath, words, { cwd: folder })
  child.stdin.end(JSON.stringify(statements))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  expect(stderr).toBe('')
  return jsonLines(stdout)
}
