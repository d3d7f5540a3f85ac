export { createEncoder, requireEngine } from './encode/create-encoder.ts'
export { decodeRecordBatches } from './encode/decode-record-batches.ts'
export { type EncodeSettings, rowGroupRows, shardExtension } from './encode/encoder.ts'
export type { InspectedShard, ShardReader, Wanted } from './inspect/index.ts'
export {
  folderOf,
  listSealed,
  ownsFolder,
  partOf,
  QUARANTINE_FOLDER,
  quarantinePath,
  SEALED_FOLDER,
  sealedPath,
} from './layout.ts'
export { moveToOrphans, ORPHANS } from './orphans.ts'
export { changedSinceSealed, isAsSealed, publishSealed, stands } from './sealed.ts'
export { type Commit, lostShards, ShardSet, type ShardSetOptions, writeOpen } from './shard-set.ts'
export { importedAt, PageRows, type PartitionRange, type Slice } from './slice.ts'
export { type RowChoice, takeRows } from './take-rows.ts'
export { type ShardWriter, shardWriter } from './write-shard.ts'
