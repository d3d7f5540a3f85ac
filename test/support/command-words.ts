import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMANDS, type CommandName } from '../../src/cli/commands/index.ts'
import type { Use } from '../../src/data-set/index.ts'
import { writeKeyPair } from './key-pair.ts'

/**
 * How each command is called for a pipeline file, or the path of a data set, so that it does all it can. The suites of
 * crashes, leaks and refusals take their commands from here, in an order in which each has what it needs; null: it takes
 * no pipeline.
 */
const FLAGS: Readonly<Record<CommandName, readonly string[] | null>> = {
  run: [],
  compact: ['--min-shards', '2'],
  prune: ['--older-than', '12mo', '--yes'],
  forget: ['--identities', 'people.txt', '--yes'],
  tables: ['--rebuild'],
  sign: ['--key', 'key.pem'],
  plan: [],
  submit: null,
  worker: null,
  status: [],
  verify: ['--complete'],
  summary: [],
  query: ['SELECT count(*) FROM credentials'],
  match: ['--directory', 'people.csv'],
  digest: null,
  load: ['--to', 'duckdb:leaks.db'],
  ddl: ['--dialect', 'snowflake'],
  evidence: ['--key', 'pub.pem', '--output', 'acme.tar'],
  init: null,
  check: [],
  schema: null,
  report: null,
  sandbox: null,
  demo: null,
}

/** The commands of these uses, each with its flags; all that take a pipeline, if none is named. */
export async function wordsOf(...uses: readonly Use[]): Promise<readonly Words[]> {
  const found: Words[] = []
  for (const [name, flags] of Object.entries(FLAGS)) {
    const { use } = await COMMANDS[name]!.load()
    if (flags !== null && (uses.length === 0 || (use !== undefined && uses.includes(use))))
      found.push([name, ...flags])
  }
  return found
}

export type Words = readonly [name: string, ...flags: string[]]

/** The files that the flags name. @param people identities, one each */
export function writeInputs(folder: string, people: readonly string[]): void {
  const write = (name: string, lines: readonly string[]): void =>
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`, { mode: 0o600 })
  write('people.txt', people)
  write('people.csv', ['mail', ...people])
  writeKeyPair(folder)
}
