import { systemClock } from '../../src/core/index.ts'
import * as dataSets from '../../src/data-set/index.ts'
import type { Pipeline } from '../../src/index.ts'
import { pruneBefore } from '../../src/pipeline/index.ts'
import { type ChangeSettings, changeOptions } from '../../src/run-options.ts'
import { parseTarget } from '../../src/warehouse/index.ts'

/** The parts of the data set as the commands call them, with defaults for what a test does not give. */

const { DataSet, WritableDataSet } = dataSets

export async function readStatus(pipeline: Pipeline, nowMs = systemClock.now()) {
  return dataSets.readStatus(await DataSet.of(pipeline, 'status'), nowMs)
}

/** As if the data set said of itself what the pipeline says. */
export async function verifyAs(pipeline: Pipeline, options?: Parameters<typeof dataSets.verifyDataSet>[1]) {
  const given = { pipeline: { value: pipeline }, planned: { value: pipeline } }
  return dataSets.verifyDataSet(Object.create(await DataSet.of(pipeline), given), options)
}

export async function pruneDataSet(
  pipeline: Pipeline,
  { olderThan, dryRun = false, ...settings }: ChangeSettings & { dryRun?: boolean; olderThan?: string },
) {
  const found = await WritableDataSet.of(pipeline)
  return dataSets.pruneDataSet(found, pruneBefore(found.pipeline, olderThan, systemClock.now()), {
    ...changeOptions(settings),
    dryRun,
  })
}

export async function forgetPeople(
  pipeline: Pipeline,
  identities: readonly string[],
  settings: ChangeSettings,
) {
  return dataSets.forgetPeople(await WritableDataSet.of(pipeline), identities, changeOptions(settings))
}

export async function queryPipeline(pipeline: Pipeline, sql: string, settings: dataSets.QuerySettings) {
  return dataSets.queryDataSet(await DataSet.of(pipeline), sql, settings)
}

export async function loadWarehouse(
  pipeline: Pipeline,
  target: string,
  folder: string,
  settings: Partial<dataSets.LoadOptions> = {},
) {
  return dataSets.loadWarehouse(await DataSet.of(pipeline), parseTarget(target, folder), {
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
