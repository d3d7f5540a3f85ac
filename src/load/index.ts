export {
  chunkRows,
  createEncoder,
  type EncodedChunk,
  type EncodePlan,
  type JsonValue,
  type PlacedChunk,
  type ShardEncoder,
  shardExtension,
} from './encode/index.ts'
export type { InspectedShard, InspectOptions, ShardReader } from './inspect/index.ts'
export { folderOf, OPEN_FOLDER, openShardPath, ownsFolder, partOf } from './layout.ts'
export type { PageRows, ShardCoder } from './open-shard.ts'
export { appendQuarantine, cutQuarantine, QUARANTINE_FOLDER, quarantinePath } from './quarantine.ts'
export { ORPHANS, setAside, setAsideStrangers } from './set-aside.ts'
export type { RestoredShard, ShardLine } from './shard-lines.ts'
export { ShardSet, type ShardSetOptions } from './shard-set.ts'
