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

/** Flips a bit in the middle of a line; negative numbers count from the end. */
export function flipInLine(number: number): Damage {
  return lines((all) => {
    const at = all.slice(0, -1).at(number)!
    const line = Buffer.from(at)
    return all.with(all.lastIndexOf(at), flipped(line, line.length >> 1).toString())
  })
}

type Commit = { readonly path: string; readonly start: number; readonly end: number }

/** The commits of the log, in their order. A file of the log has one after the other. */
export async function commitsIn(output: string): Promise<readonly Commit[]> {
  const folder = join(output, '_state/log')
  const commits: Commit[] = []
  for (const path of (await readdir(folder)).sort().map((name) => join(folder, name))) {
    const bytes = await readFile(path)
    for (let start = 0; start < bytes.length; ) {
      const line = bytes.subarray(start, start + endOfLine(bytes.subarray(start)))
      const { parts } = JSON.parse(line.toString()) as { parts: { blobs?: [number, number][] }[] }
      const blobs = parts.flatMap(({ blobs = [] }) => blobs)
      const end = blobs.reduce((sum, [length]) => sum + length, start + line.length)
      commits.push({ path, start, end })
      start = end
    }
  }
  return commits
}

/** Replaces a commit by other bytes. Its file goes if nothing is left of it. */
async function replaceCommit({ path, start, end }: Commit, edit: (bytes: Buffer) => Buffer): Promise<void> {
  await change(path, (bytes) =>
    Buffer.concat([bytes.subarray(0, start), edit(bytes.subarray(start, end)), bytes.subarray(end)]),
  )
  if ((await readFile(path)).length === 0) await rm(path)
}

const NOTHING = (): Buffer => Buffer.alloc(0)

/** Edits one of the commits, or removes it; negative numbers count from the end. */
export function commit(number: number, edit: 'remove' | ((bytes: Buffer) => Buffer)): Damage {
  return async (output) => {
    const found = (await commitsIn(output)).at(number)
    if (found === undefined) throw new Error('there is no such commit')
    await replaceCommit(found, edit === 'remove' ? NOTHING : edit)
  }
}

/** Edits the rows, or what else comes after the entries, of every commit that has any, from the last on. */
export function bytesOfCommits(edit: (bytes: Buffer) => Buffer): Damage {
  return async (output) => {
    let edited = 0
    for (const each of (await commitsIn(output)).toReversed()) {
      await replaceCommit(each, (bytes) => {
        const end = endOfLine(bytes)
        if (end < bytes.length) edited++
        return end === bytes.length
          ? bytes
          : Buffer.concat([bytes.subarray(0, end), edit(bytes.subarray(end))])
      })
    }
    if (edited === 0) throw new Error('no commit has bytes')
  }
}

export function filesOfTheLog(edit: (bytes: Buffer) => Buffer): Damage {
  return async (output) => {
    for (const path of new Set((await commitsIn(output)).map(({ path }) => path))) await change(path, edit)
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

export const removeLastCommits: Damage = async (output) => {
  for (const each of (await commitsIn(output)).slice(-4).toReversed()) await replaceCommit(each, NOTHING)
}

/** Puts a commit in the place of the next one. */
export const doubleACommit: Damage = async (output) => {
  const [, one, other] = await commitsIn(output)
  const bytes = (await readFile(one!.path)).subarray(one!.start, one!.end)
  await replaceCommit(other!, () => bytes)
}

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
