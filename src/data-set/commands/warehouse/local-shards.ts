import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExportError, type Pipeline, type Store } from '../../../core/index.ts'
import { diskStore } from '../../../disk/index.ts'
import { createPrivateFolder, sweepPrivateFolders } from '../../../state/index.ts'

type LocalShards = {
  /** Absolute path of the folder that paths are relative to. */
  readonly root: string
  readonly store: Store
  /** Makes a shard available. Idempotent. @throws the signal's reason */
  download(path: string): Promise<void>
  release(path: string): Promise<void>
  close(): Promise<void>
}

/** The files themselves, or copies in a private temporary folder. @param stop ends a copy in progress */
export async function localShards(
  { load: { location } }: Pipeline,
  store: Store,
  stop: AbortSignal,
): Promise<LocalShards> {
  if (location.kind === 'disk') {
    const nothing = async (): Promise<void> => {}
    return { root: location.root, store, download: nothing, release: nothing, close: nothing }
  }
  const folder = await temporaryFolder()
  const copies = await diskStore({ root: folder.path, fileMode: 0o600, dirMode: 0o700 }).own(
    randomBytes(6).toString('hex'),
  )
  return {
    root: folder.path,
    store: copies,
    async download(path) {
      stop.throwIfAborted()
      // The reader of the copy reports what is missing.
      if ((await copies.size(path)) !== null || (await store.size(path)) === null) return
      const chunks = async function* (): AsyncGenerator<Uint8Array> {
        for await (const chunk of store.stream(path)) {
          stop.throwIfAborted()
          yield chunk
        }
      }
      await copies.create(path, chunks())
    },
    release: (path) => copies.remove(path),
    close: () => folder.remove(),
  }
}

const PREFIX = 'spillway-tmp-'

/** Removes the temporary folders of killed commands, which may hold rows. @returns those of others */
export function sweepTemporaryFolders(): Promise<readonly string[]> {
  return sweepPrivateFolders(tmpdir(), (name) => name.startsWith(PREFIX))
}

/** It is removed when the process ends, unless that is killed. */
export async function temporaryFolder() {
  await sweepTemporaryFolders()
  const path = privateFolderIn(tmpdir())
  const removeNow = (): void => rmSync(path, { recursive: true, force: true })
  // Also if a second signal, or the time limit after the first, ends the process at once.
  process.once('exit', removeNow)
  return {
    path,
    async remove(): Promise<void> {
      await rm(path, { recursive: true, force: true })
      process.off('exit', removeNow)
    },
  }
}

function privateFolderIn(parent: string): string {
  try {
    return createPrivateFolder(join(parent, PREFIX))
  } catch (cause) {
    throw new ExportError({
      kind: 'storage',
      what: 'No temporary folder can be created',
      where: parent,
      next: 'Set TMPDIR to a folder that can be written to and has room.',
      cause,
    })
  }
}
