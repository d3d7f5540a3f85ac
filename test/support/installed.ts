import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { installPackage, packFreshClone } from './install-package.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder that the package is installed in; absent where the files in `dist/` are tested. */
    installed?: string
  }
}

/** A file beside the folder of the package, written when npm ends. It holds `INSTALLED`, or why npm failed. */
export const OUTCOME = 'outcome.txt'
export const INSTALLED = 'installed'

/**
 * Packs and installs the package once for all tests of a project, which find it by `inject('installed')`. It does not
 * wait for npm: `wait-for-package.ts` does, so that the files of other projects can begin.
 */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-installed-'))
  const installed = join(folder, 'empty')
  provide('installed', installed)
  const installing = packFreshClone(folder)
    .then((packed) => installPackage(packed, installed))
    .catch((error: unknown) => `${error}`)
    .then((failure) => writeFile(`${installed}-${OUTCOME}`, failure ?? INSTALLED))
  return async () => {
    await installing
    await rm(folder, { recursive: true, force: true })
  }
}
