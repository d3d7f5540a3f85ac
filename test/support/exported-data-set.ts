import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts'
import { type PipelineParts, type Place, place, placeAt, SMALL } from '../e2e/support/place.ts'

/**
 * A place with a finished export, as tests begin that look at what comes after it. Each export is made once a run of the
 * tests and copied: copies keep their identity, and the sandbox of each has seen no search yet.
 */
export async function exportedPlace(parts: PipelineParts, options: SandboxOptions = {}): Promise<Place> {
  const here = await place(parts, options)
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
    const { folder, env, output } = await placeAt(sandbox, parts)
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
