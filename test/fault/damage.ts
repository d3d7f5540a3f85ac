import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shardHashes } from './support.ts'

export type Damage = (output: string) => Promise<void>

export const CHECKPOINT = '_state/checkpoint.jsonl'

export async function change(path: string, edit: (bytes: Buffer) => Buffer): Promise<void> {
  await writeFile(path, edit(await readFile(path)))
}

export function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at]! ^= 1
  return copy
}

/** The line of entries that a commit begins with ends here. */
export function endOfLine(commit: Buffer): number {
  return commit.indexOf(10) + 1
}

/** Edits the lines of the checkpoint, in which the last line has no line break. */
export function lines(edit: (lines: string[]) => string[]): Damage {
  return (output) =>
    change(join(output, CHECKPOINT), (bytes) => Buffer.from(edit(bytes.toString().split('\n')).join('\n')))
}

export function filesOfTheLog(edit: (bytes: Buffer) => Buffer): Damage {
  return async (output) => {
    const folder = join(output, '_state/log')
    for (const name of await readdir(folder)) await change(join(folder, name), edit)
  }
}

/** Puts the state of an earlier moment in the place of what is there: all of it, or the checkpoint alone. */
export function restored(earlier: () => string, path: '_state' | typeof CHECKPOINT): Damage {
  return async (output) => {
    await rm(join(output, path), { recursive: true })
    await cp(join(earlier(), path), join(output, path), { recursive: true })
  }
}

export const remove =
  (path: string): Damage =>
  (output) =>
    rm(join(output, path), { recursive: true })

export const replace =
  (path: string, text: string): Damage =>
  (output) =>
    writeFile(join(output, path), text)

/** What a killed process may leave. */
export const leaveTemporaryFiles: Damage = async (output) => {
  for (const path of ['_state/open.0badf00d0bad/7', '_state/sealed/99.0badf00d0badf00d']) {
    await mkdir(join(output, path, '..'), { recursive: true })
    await writeFile(join(output, path), 'left over')
  }
}

/** Copies a shard to a free number: a reader would count its rows twice. */
export const copyShard: Damage = async (output) => {
  const [shard] = [...(await shardHashes(output)).keys()]
  if (shard === undefined) throw new Error('there is no shard yet')
  await copyFile(join(output, shard), join(output, shard.replace(/part-\d+/, 'part-00007')))
}
