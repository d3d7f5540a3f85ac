import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Clock, RunSummary } from '../../src/index.ts'
import { PACKAGE } from './run-cli.ts'
import { THOROUGH } from './thorough.ts'
import { PIPELINE, type PipelineParts, pipelineText, type Workspace } from './workspace.ts'

const LIBRARY = THOROUGH ? pathToFileURL(join(PACKAGE, 'dist/index.js')).href : '../../src/index.ts'
const { readPipeline, runPipeline } = (await import(LIBRARY)) as typeof import('../../src/index.ts')

/** Runs the library instead of the command, since each of hundreds of runs would start a process. Writes to `out`. */
export async function runLibrary(
  { folder, env }: Pick<Workspace, 'folder' | 'env'>,
  parts: PipelineParts,
): Promise<RunSummary & { readonly warnings: readonly string[] }> {
  await writeFile(join(folder, PIPELINE), pipelineText(parts))
  const pipeline = await readPipeline(PIPELINE, { env, cwd: folder })
  const warnings: string[] = []
  const onLog = (level: string, message: string) => void (level === 'warn' && warnings.push(message))
  const settings = { env, clock: impatientClock(), onLog }
  return { ...(await runPipeline(pipeline, settings)), warnings }
}

/** A clock whose waits take no time but advance it. */
function impatientClock(): Clock {
  let skippedMs = 0
  return {
    now: () => Date.now() + skippedMs,
    monotonicMs: () => performance.now() + skippedMs,
    async sleep(ms, signal) {
      signal.throwIfAborted()
      skippedMs += ms
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}
