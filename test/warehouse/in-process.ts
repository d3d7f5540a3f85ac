import { join } from 'node:path'
import { expect } from 'vitest'
import type { LoadOptions, LoadSummary, QueryResult } from '../../src/data-set/index.ts'
import { type Pipeline, readPipeline, runPipeline } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import type { LoadMode } from '../../src/warehouse/index.ts'
import { refusal } from '../disk/errors.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import { loadWarehouse, queryPipeline } from '../support/rooms.ts'
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
  return loadWarehouse(pipeline, url, folder, { mode, ...more })
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
export const refusalOf = (...given: Parameters<typeof queryHere>) => refusal(queryHere(...given))
