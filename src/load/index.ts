export {
  chunkRows,
  createEncoder,
  type EncodedChunk,
  type EncodePlan,
  type PlacedChunk,
  type ShardEncoder,
  shardExtension,
} from './encode/index.ts'
export type { InspectedShard, InspectOptions, ShardReader } from './inspect/index.ts'
export { folderOf, OPEN_FOLDER, openShardPath, ownsFolder, partOf } from './layout.ts'
export type { ShardCoder } from './open-shard.ts'
export { PageRows, type Piece, type Stretch } from './piece.ts'
export type { Places } from './placed-rows.ts'
export {
  appendQuarantine,
  cutQuarantine,
  QUARANTINE_FOLDER,
  type QuarantinedItem,
  quarantinePath,
} from './quarantine.ts'
export { ORPHANS, setAside, setAsideStrangers } from './set-aside.ts'
export { type Commit, ShardSet, type ShardSetOptions } from './shard-set.ts'
export { encodeSummed, type SummedChunk } from './sum-rows.ts'
export { type Workplace, workplace } from './workplace.ts'
