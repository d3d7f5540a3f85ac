import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of what made-once.ts makes, for all processes of a run. */
    exports: string
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-exports-'))
  provide('exports', folder)
  return () => rm(folder, { recursive: true, force: true })
}
