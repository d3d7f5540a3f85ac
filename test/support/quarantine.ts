import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonLines } from './run-cli.ts'

/** The entries of all items in quarantine, by the names of their files. */
export async function quarantineByFile(output: string) {
  const folder = join(output, '_quarantine')
  const names = (await readdir(folder).catch(() => [])).sort()
  return Promise.all(
    names.map(async (name) => [name, jsonLines(await readFile(join(folder, name), 'utf8'))] as const),
  )
}

export async function quarantineOf(output: string) {
  return (await quarantineByFile(output)).flatMap(([, entries]) => entries)
}
