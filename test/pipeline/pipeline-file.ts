import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pipeline } from '../../src/core/index.ts'
import { type Environment, type Overrides, readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure as rejection } from '../support/failure.ts'

/** The smallest pipeline file: line 2 is `service:`, line 4 is `extract:`. */
export const SMALLEST = `name: acme
service:
  base_url: https://api.example.com/firework
extract:
  domains: [acme.com]
`

export type Setting = {
  readonly env?: Environment
  readonly overrides?: Overrides
  /** Folder to write to and read from; a new one by default. */
  readonly cwd?: string
  readonly files?: Readonly<Record<string, string | Uint8Array>>
}

/** Writes `p.yaml` into a folder and reads it from there. */
export async function read(text: string | Uint8Array, setting: Setting = {}): Promise<Pipeline> {
  const { env = {}, overrides = {}, cwd = scratchFolder() } = setting
  writeFileSync(join(cwd, 'p.yaml'), text)
  for (const [name, content] of Object.entries(setting.files ?? {})) writeFileSync(join(cwd, name), content)
  return readPipeline('p.yaml', { env, overrides, cwd })
}

/** The problems that reading reports, one a line. Throws if there are none, or for any other error. */
export async function problems(text: string | Uint8Array, setting: Setting = {}): Promise<string[]> {
  const error = await failure(read(text, setting))
  return error.message.split('\n').slice(1)
}

export const failure = (promise: Promise<unknown>): Promise<Error> => rejection(promise, 'config')

/** The smallest file with a line added as the first of a section; `transform` and `load` begin in line 6. */
export function withLine(section: 'service' | 'extract' | 'transform' | 'load', line: string): string {
  if (section === 'transform' || section === 'load') return `${SMALLEST}${section}:\n  ${line}\n`
  return SMALLEST.replace(`${section}:\n`, `${section}:\n  ${line}\n`)
}

/** The rows of a table: one a line, its cells between tildes. */
export function tableOf(text: string): string[][] {
  return text
    .trim()
    .split('\n')
    .map((row) => row.split(' ~ '))
}
