import { copyFile, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { shardHashes } from './support.ts'

/** Damages a data set, given its folder. */
export type Damage = (output: string) => Promise<void>

export const JOURNAL = '_state/checkpoint.jsonl'

/** Truncates the last line of the journal to the given number of bytes. */
export function cutLastLine(kept: (length: number) => number): Damage {
  return async (output) => {
    const bytes = await readFile(join(output, JOURNAL))
    const start = bytes.lastIndexOf(10, bytes.length - 2) + 1
    await truncate(join(output, JOURNAL), start + kept(bytes.length - start))
  }
}

/** Replaces the lines of the journal. */
export function lines(change: (lines: string[]) => string[]): Damage {
  return async (output) => {
    const path = join(output, JOURNAL)
    const all = (await readFile(path, 'utf8')).trimEnd().split('\n')
    await writeFile(
      path,
      change(all)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
}

/** Flips a bit in the middle of a line; negative numbers count from the end. */
export function flipInLine(number: number): Damage {
  return lines((all) => {
    const line = Buffer.from(all.at(number) ?? '')
    line[line.length >> 1]! ^= 1
    return all.with(number, line.toString())
  })
}

/** Reduces the journal to its first line, with another content under a valid checksum. */
export function header(from: string, to: string): Damage {
  return lines(([first = '']) => {
    const body = first.slice(0, first.lastIndexOf(',"crc"')).replace(from, to)
    const checksum = crc32(body).toString(16).padStart(8, '0')
    // The checksum of the line and that of all lines so far are the same, because this is the only line.
    return [`${body},"crc":"${checksum}${checksum}"}`]
  })
}

/** Cuts the journal after the first seal of a shard in a folder; in any folder, unless one is named. */
export const upToSeal = (folder = ''): Damage =>
  lines((all) => {
    const sealed = all.findIndex((line) => line.includes(`"path":"credentials/${folder}`))
    return all.slice(0, sealed + 1)
  })

export async function flip(path: string, at: (size: number) => number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at(bytes.length)]! ^= 1
  await writeFile(path, bytes)
}

/** Damages the first file of an open shard with this suffix. */
export function openFile(ending: '.log' | '.part', change: (path: string) => Promise<void>): Damage {
  return async (output) => {
    // The name has the owner as a suffix where the owner was killed.
    const state = join(output, '_state')
    const folder = join(state, (await readdir(state)).find((name) => name.startsWith('open')) ?? 'open')
    const name = (await readdir(folder)).find((name) => name.endsWith(ending))
    if (name === undefined) throw new Error(`no open shard has a ${ending}`)
    await change(join(folder, name))
  }
}

export const leaveTemporaryFiles: Damage = async (output) => {
  for (const name of [
    '_manifest.json.0badf00d.tmp',
    '_SUCCESS.0badf00d.tmp',
    '_state/checkpoint.jsonl.0badf00d.tmp',
    '_state/open/99.part',
    '_state/open/99.log',
  ]) {
    await writeFile(join(output, name), 'left over')
  }
}

/** Copies a shard to a free number: a reader would count its rows twice. */
export const copyShard: Damage = async (output) => {
  const [shard] = [...(await shardHashes(output)).keys()]
  if (shard === undefined) throw new Error('there is no shard yet')
  await copyFile(join(output, shard), join(output, shard.replace(/part-\d+/, 'part-00007')))
}

export const folderForJournal: Damage = async (output) => {
  await rm(join(output, JOURNAL))
  await mkdir(join(output, JOURNAL))
}
