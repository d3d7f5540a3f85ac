export { type EncodedRowGroupWithAggregates, encodeWithAggregates } from './aggregate-rows.ts'
export { createEncoder } from './encode/create-encoder.ts'
export {
  type EncodePlan,
  rowGroupRows,
  type ShardEncoder,
  shardExtension,
  type WrittenRowGroup,
} from './encode/encoder.ts'
export type { InspectedShard, ShardReader } from './inspect/index.ts'
export { folderOf, OPEN_FOLDER, openShardPath, ownsFolder, partOf } from './layout.ts'
export { type EncodeBuffer, makeEncodeBuffer, type ShardCoder } from './open-shard.ts'
export { moveToOrphans, moveUnknownShards, ORPHANS } from './orphans.ts'
export {
  appendQuarantine,
  cutQuarantine,
  QUARANTINE_FOLDER,
  type QuarantinedItem,
  quarantinePath,
} from './quarantine.ts'
export { type HashThread, type ShardHash, shardHash, shardHashIn } from './shard-hash.ts'
export { type Commit, ShardSet, type ShardSetOptions } from './shard-set.ts'
export { PageRows, type PartitionRange, type Slice } from './slice.ts'
export type { RowChoice } from './take-rows.ts'
