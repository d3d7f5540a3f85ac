export * from './checkpoint/checkpoint.ts'
export type { CheckpointState } from './checkpoint/fold-journal.ts'
export {
  chainEntry,
  countOfBlob,
  decodeIds,
  encodeIds,
  type FoldedChain,
  isInOrder,
  type LoggedIds,
} from './checkpoint/folded-chain.ts'
export { afterFeedPage, NEW_FEED, passOf } from './checkpoint/folded-feed.ts'
export {
  type FoldedPartition,
  hasBegun,
  hasEnded,
  isKnown,
  isOver,
  isRedone,
  NO_PARTITIONS,
  NO_SUMS,
  type PartitionCounts,
  type PartitionState,
  type PartitionStates,
  type PartitionSums,
  type PlanStates,
  partitionCounts,
  presentOf,
  sumOfPartitions,
} from './checkpoint/folded-partition.ts'
export {
  endEntry,
  type FoldedRun,
  NEW_RUN,
  NO_RUN_COUNTS,
  type RunCounts,
  searchesByMonth,
} from './checkpoint/folded-run.ts'
export type { BatchRef, FoldedShard, ShardIdentity } from './checkpoint/folded-shards.ts'
export { PathMap, type SealedShard, splitPath } from './checkpoint/packed-collections.ts'
export { partitionEntry } from './checkpoint/snapshot.ts'
export type * from './journal-entry.ts'
export { runError } from './journal-entry.ts'
export { type Hold, type Holder, type Lock, readHolder, takeLock } from './lock/lock.ts'
export { sweepTemporaryFolders, temporaryFolder } from './lock/temporary-folder.ts'
export { type BlobRef, LOG_FOLDER, readBlob } from './log/commit.ts'
export { type CommitLog, Journal } from './log/journal.ts'
export { emptyLog, hasCommits } from './log/read-log.ts'
export { entriesOfManifest, headerOfManifest, stateOfManifest } from './manifest/from-manifest.ts'
export * from './manifest/manifest.ts'
export * from './manifest/write-manifest.ts'
export { asExported, schemaFromJson, schemaToJson, usedSchemas } from './schemas.ts'
export * from './settings.ts'
export * from './suppression.ts'
export * from './verdict.ts'
