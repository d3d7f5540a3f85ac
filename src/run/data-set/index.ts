export { countPartitions, type PlanCounts } from './count-partitions.ts'
export { clearDataSet, growingFiles, isReport, planFor, refuseLinks } from './data-set.ts'
export { type Forecast, forecast } from './forecast.ts'
export { type Invalidation, invalidate, invalidationOf, planRedo } from './invalidate.ts'
export { type KeptPartition, type OldPartitions, oldPartitions } from './old-partitions.ts'
export {
  type HoldOptions,
  holdDataSet,
  openDataSet,
  requireFolder,
  requireReachable,
} from './open-data-set.ts'
export { recordPrune, removePruned, removePrunedQuarantine } from './prune.ts'
export { openSettledCheckpoint, readSettledCheckpoint } from './recover.ts'
export { replaceManifest } from './replace-manifest.ts'
export { asInFile, isWholeExported, planAsOfLastRun, retiredQueries } from './whole.ts'
