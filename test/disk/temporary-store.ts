import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Store } from '../../src/core/index.ts'
import { diskStore } from '../../src/disk/index.ts'

export type TemporaryStore = { readonly store: Store; readonly root: string }

/** An empty temporary folder that exists until the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A store in a folder that does not exist yet. */
export function temporaryStore(): TemporaryStore {
  const root = join(temporaryFolder(), 'data')
  return { root, store: storeAt(root) }
}

export function storeAt(root: string): Store {
  return diskStore({ root, fileMode: 0o600, dirMode: 0o700 })
}
