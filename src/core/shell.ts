import type { Pipeline } from './pipeline.ts'

/** Quotes a word for a POSIX shell, if needed. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The command that runs a pipeline, for messages, with the flag that says where its data set lies. */
export function runCommand({ file, load, locations }: Pick<Pipeline, 'file' | 'load' | 'locations'>): string {
  const output = locations['load.path'] === '--output' ? ` --output ${shellWord(load.pathAsGiven)}` : ''
  return `spillway run ${shellWord(file)}${output}`
}
