import type { FencedStore, Log, Store } from '../../../src/core/index.ts'

/** The location of one data set, empty at first. */
export type World = {
  /** Opens the store like another process: nothing is shared with those opened before but the stored files. */
  readonly open: () => Store
  /** The names of all stored files and folders. */
  readonly names: () => Promise<readonly string[]>
}

export type MakeWorld = () => World | Promise<World>

/** The content of all files of a store, by path. */
export type Contents = Readonly<Record<string, string | null>>

/** @returns null when there is no such file */
export async function textOf(store: Store, path: string): Promise<string | null> {
  const bytes = await store.read(path)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

export async function contentsOf(store: Store, paths: readonly string[]): Promise<Contents> {
  const texts = await Promise.all(paths.map((path) => textOf(store, path)))
  return Object.fromEntries(paths.map((path, index) => [path, texts[index]!]))
}

export async function streamed(store: Store, path: string): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.stream(path)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Appends a text to a log and flushes it. */
export async function add(log: Log, text: string | Uint8Array): Promise<void> {
  await log.append([Buffer.from(text)])
  await log.fsync()
}

/** Writes a file as a log, with one append for each text. */
export async function writeLog(store: Store, path: string, ...texts: readonly string[]): Promise<void> {
  const log = await store.openLog(path, 0)
  for (const text of texts) await add(log, text)
  await log.close()
}

let owners = 0

/** A unique name, as each run has one. */
export function newOwner(): string {
  return (++owners).toString(16).padStart(12, '0')
}

/**
 * Ends all former owners, as a run does (see `takeLock`), and gathers what they left.
 * @param self the name of the new owner
 * @param mayWrite whether they may still run
 * @param growing files that they may have opened under public names
 */
export async function takeOverAll(
  own: FencedStore,
  self: string,
  mayWrite: boolean,
  growing: readonly string[] = [],
): Promise<void> {
  const names = await own.list('_state')
  if (names.includes('open')) await own.takeOver(null, false)
  for (const name of names) {
    const id = /^open\.([0-9a-f]{12})$/.exec(name)?.[1]
    if (id !== undefined && id !== self) await own.takeOver(id, mayWrite)
  }
  if (mayWrite) for (const path of growing) if ((await own.size(path)) !== null) await own.replaceByCopy(path)
  await own.settle()
}

/** A new owner that has taken over from all before it. */
export async function nextOwner(
  { open }: World,
  mayWrite: boolean,
  growing: readonly string[] = [],
): Promise<FencedStore> {
  const self = newOwner()
  const own = await open().fenced('_state/open', self)
  await takeOverAll(own, self, mayWrite, growing)
  return own
}
