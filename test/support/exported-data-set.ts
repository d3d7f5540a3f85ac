import { cp } from 'node:fs/promises'
import { readPipeline, runPipeline } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { madeOnce } from './made-once.ts'
import { type SandboxOptions, startSandbox } from './sandbox.ts'
import { newWorkspace, type PipelineParts, SMALL, type Workspace, workspaceFor } from './workspace.ts'

/**
 * A workspace with a finished export, for tests of what comes after a run. Each export is made once per test run and
 * copied. Copies keep their identity. Each has its own sandbox, which has seen no search yet.
 */
export async function exportedWorkspace(
  parts: PipelineParts,
  options: SandboxOptions = {},
): Promise<Workspace> {
  const here = await newWorkspace(parts, options)
  const kept = await madeOnce([parts, options], (path) => keepExport(path, parts, options))
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
    await cp(output, path, { recursive: true })
  } finally {
    await sandbox.close()
  }
}
