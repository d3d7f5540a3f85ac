import { join } from 'node:path'
import { expect } from 'vitest'
import {
  ExportError,
  type LoadMode,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  type Pipeline,
  parseTarget,
  type QueryResult,
  queryPipeline,
  readPipeline,
  runOptions,
  runPipeline,
  systemClock,
} from '../../src/index.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import type { Workspace } from '../support/workspace.ts'
import type { TestTarget } from './targets.ts'

export function pipelineIn({ folder, env }: Pick<Workspace, 'folder' | 'env'>): Promise<Pipeline> {
  return readPipeline(join(folder, 'pipeline.yaml'), { env, cwd: folder })
}

/** Exports in this process, for tests of later steps. */
export async function exportHere(
  { folder, env }: Pick<Workspace, 'folder' | 'env'>,
  redo: readonly string[] = [],
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<void> {
  const pipeline = await pipelineIn({ folder, env })
  expect(await runPipeline(pipeline, await runOptions(pipeline, { env, redo, fresh }))).toMatchObject({
    error: null,
  })
}

/** Loads in this process, for tests of the load after it. */
export async function loadHere(
  { folder, env }: Pick<Workspace, 'folder' | 'env'>,
  { url }: Pick<TestTarget, 'url'>,
  mode: LoadMode = 'append',
  more: Partial<LoadOptions> = {},
): Promise<LoadSummary> {
  process.env.PGPASSWORD = PASSWORD
  const pipeline = await pipelineIn({ folder, env })
  return loadWarehouse(pipeline, parseTarget(url, folder), {
    clock: systemClock,
    stop: new AbortController().signal,
    schema: null,
    table: null,
    mode,
    evolve: false,
    onWait: () => {},
    onShard: () => {},
    ...more,
  })
}

/** Queries in this process, as the command does. @param database of DuckDB; null: the files */
export async function queryHere(
  { folder, env }: Pick<Workspace, 'folder' | 'env'>,
  sql: string,
  database: string | null = null,
): Promise<QueryResult> {
  return queryPipeline(await pipelineIn({ folder, env }), sql, { database, cwd: folder })
}

/** The error of a query that is refused. */
export async function refusalOf(...given: Parameters<typeof queryHere>): Promise<ExportError> {
  const error = await queryHere(...given).catch((thrown: unknown) => thrown)
  if (!(error instanceof ExportError)) throw new Error(`${given[1]} was not refused: ${String(error)}`)
  return error
}
