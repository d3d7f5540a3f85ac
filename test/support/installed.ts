import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { installPackage, packBuilt, packFreshClone } from './install-package.ts'
import { isThorough } from './thorough.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder that the package is installed in; not there where the built files are tested as they lie. */
    installed?: string
  }
}

/** Packs and installs the package once for all tests of a project, which find it by `inject('installed')`. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-installed-'))
  const installed = join(folder, 'empty')
  await installPackage(await (isThorough() ? packFreshClone(folder) : packBuilt(folder)), installed)
  provide('installed', installed)
  return () => rm(folder, { recursive: true, force: true })
}
