export {
  CHECKPOINT_PATH,
  type Checkpoint,
  openCheckpoint,
  readCheckpoint,
  rewriteCheckpoint,
} from './checkpoint.ts'
export type { CheckpointState, OpenShard, PartitionRecord } from './checkpoint-state.ts'
export { ID_FOLDER, type IdLog, type IdMark, idPath, newIdLog, openIdLog, sweepIds } from './id-log.ts'
export type { ChunkLine, HeaderLine, Line, PageFacts, RunStatus, SealLine } from './lines.ts'
export { type Lock, takeLock } from './lock.ts'
export {
  MANIFEST_PATH,
  type Manifest,
  type ManifestShard,
  manifestShards,
  readManifest,
  SUCCESS_PATH,
  writeManifest,
} from './manifest.ts'
export { splitPath } from './path-map.ts'
export { checkSettings, frozenSettings, type Settings, settingsDigest } from './settings.ts'
export type { SealedShard, ShardList } from './shard-list.ts'
