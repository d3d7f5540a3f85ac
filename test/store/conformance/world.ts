import type { OwnedStore, Store } from '../../../src/core/index.ts'
import { newOwner } from '../../disk/temporary-store.ts'

/** The location of one data set, empty at first. */
export type World = {
  /** Opens the store like another process: nothing is shared with those opened before but the stored files. */
  readonly open: () => Store
  readonly names: () => Promise<readonly string[]>
}

export type MakeWorld = () => World | Promise<World>

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

/** A new owner that has taken over from all before it, as a run does (see `takeLock`). */
export async function nextOwner({ open }: World): Promise<OwnedStore> {
  const self = newOwner()
  const own = await open().own(self)
  await own.takeOver(await ownersOf(own, self))
  return own
}

export async function ownersOf(store: Store, self: string): Promise<readonly string[]> {
  const names = await store.list('_state')
  return names
    .filter((name) => /^open\.[0-9a-f]{12}$/.test(name) && name !== `open.${self}`)
    .map((name) => name.slice(5))
}
