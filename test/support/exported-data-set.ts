import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts'
import {
  newWorkspace,
  type PipelineParts,
  SMALL,
  type Workspace,
  workspaceFor,
} from '../e2e/support/workspace.ts'

/**
 * A workspace with a finished export, for tests of what comes after a run. Each export is made once per test run and
 * copied. Copies keep their identity. Each has its own sandbox, which has seen no search yet.
 */
export async function exportedWorkspace(
  parts: PipelineParts,
  options: SandboxOptions = {},
): Promise<Workspace> {
  const here = await newWorkspace(parts, options)
  const key = createHash('sha256')
    .update(JSON.stringify([parts, options]))
    .digest('hex')
  const kept = join(inject('exports'), key)
  if (!existsSync(kept)) await keepExport(kept, parts, options)
  await cp(kept, here.output, { recursive: true })
  return here
}

async function keepExport(path: string, parts: PipelineParts, options: SandboxOptions): Promise<void> {
  const sandbox = await startSandbox({ ...SMALL, ...options })
  try {
    const { folder, env, output } = await workspaceFor(sandbox, parts)
    const pipeline = await readPipeline('pipeline.yaml', { env, cwd: folder })
    const { status, error } = await runPipeline(pipeline, await runOptions(pipeline, { env }))
    if (status !== 'complete') throw error ?? new Error(status)
    const own = `${path}.${process.pid}`
    await cp(output, own, { recursive: true })
    // Another process may have been as quick.
    await rename(own, path).catch((thrown: unknown) => {
      if (!existsSync(path)) throw thrown
    })
  } finally {
    await sandbox.close()
  }
}
