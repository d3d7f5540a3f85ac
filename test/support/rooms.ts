import { systemClock } from '../../src/core/index.ts'
import * as dataSets from '../../src/data-set/index.ts'
import type { Pipeline } from '../../src/index.ts'
import { pruneBefore } from '../../src/pipeline/index.ts'
import { type ChangeSettings, changeOptions } from '../../src/run-options.ts'
import { parseTarget } from '../../src/warehouse/index.ts'

/** The parts of the data set as the commands call them, with defaults for what a test does not give. */

async function described(pipeline: Pipeline, use: dataSets.Use): Promise<Pipeline> {
  return (await dataSets.describeDataSet({ pipeline, unknown: null }, use)).pipeline
}

export async function readStatus(pipeline: Pipeline, nowMs = systemClock.now()) {
  return dataSets.readStatus(await dataSets.describeDataSet({ pipeline, unknown: null }, 'status'), nowMs)
}

export async function pruneDataSet(
  pipeline: Pipeline,
  { olderThan, dryRun = false, ...settings }: ChangeSettings & { dryRun?: boolean; olderThan?: string },
) {
  const found = await described(pipeline, 'change')
  return dataSets.pruneDataSet(found, pruneBefore(found, olderThan, systemClock.now()), {
    ...changeOptions(settings),
    dryRun,
  })
}

export async function forgetPeople(
  pipeline: Pipeline,
  identities: readonly string[],
  settings: ChangeSettings,
) {
  return dataSets.forgetPeople(await described(pipeline, 'change'), identities, changeOptions(settings))
}

export async function queryPipeline(pipeline: Pipeline, sql: string, settings: dataSets.QuerySettings) {
  return dataSets.queryPipeline(await described(pipeline, 'read'), sql, settings)
}

export async function loadWarehouse(
  pipeline: Pipeline,
  target: string,
  folder: string,
  settings: Partial<dataSets.LoadOptions> = {},
) {
  return dataSets.loadWarehouse(await described(pipeline, 'read'), parseTarget(target, folder), {
    ...LOAD,
    stop: new AbortController().signal,
    ...settings,
  })
}

const LOAD = {
  clock: systemClock,
  schema: null,
  table: null,
  mode: 'append',
  evolve: false,
  supersede: null,
  onWait: () => {},
  onShard: () => {},
} as const
