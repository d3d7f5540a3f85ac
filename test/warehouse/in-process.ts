import { join } from 'node:path'
import { expect } from 'vitest'
import {
  type LoadMode,
  type LoadSummary,
  loadWarehouse,
  parseTarget,
  readPipeline,
  runOptions,
  runPipeline,
  systemClock,
} from '../../src/index.ts'
import type { Place } from '../e2e/support/place.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import type { TestTarget } from './targets.ts'

/** Exports in this process: for tests that try what comes after. */
export async function exportHere(
  { folder, env }: Pick<Place, 'folder' | 'env'>,
  redo: readonly string[] = [],
): Promise<void> {
  const pipeline = await readPipeline(join(folder, 'pipeline.yaml'), { env, cwd: folder })
  expect(await runPipeline(pipeline, await runOptions(pipeline, { env, redo }))).toMatchObject({
    error: null,
  })
}

/** Loads in this process: for tests that try what the load after that does. */
export async function loadHere(
  { folder, env }: Place,
  { url }: TestTarget,
  mode: LoadMode = 'append',
): Promise<LoadSummary> {
  process.env.PGPASSWORD = PASSWORD
  const pipeline = await readPipeline(join(folder, 'pipeline.yaml'), { env, cwd: folder })
  return loadWarehouse(pipeline, parseTarget(url, folder), {
    clock: systemClock,
    stop: new AbortController().signal,
    readSecret: async () => null,
    readMaskKey: async () => null,
    schema: null,
    table: null,
    mode,
    evolve: false,
    onWait: () => {},
    onShard: () => {},
  })
}
