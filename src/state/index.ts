export { type ChainRecord, chainLine } from './chain-record.ts'
export {
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  type Checkpoint,
  openCheckpoint,
  readCheckpoint,
  readDataSetId,
  rewriteCheckpoint,
} from './checkpoint.ts'
export {
  type CheckpointState,
  hasBegun,
  isKnown,
  isOver,
  NEW_RUN,
  type PartitionRecord,
  type RunRecord,
  setAsideOf,
} from './checkpoint-state.ts'
export { claimText, describeSelf, fateOf, parseClaim } from './claim.ts'
export {
  ID_FOLDER,
  type IdLog,
  idPath,
  isIdFile,
  newIdLog,
  openIdLog,
  sweepIds,
} from './id-log.ts'
export type { Line } from './lines.ts'
export { type Hold, type Lock, type LockOptions, takeLock } from './lock.ts'
export {
  holdingsOf,
  isManifestOf,
  MANIFEST_PATH,
  MANIFEST_START,
  type Manifest,
  type ManifestShard,
  manifestShard,
  manifestShards,
  parseManifest,
  type RetiredQuery,
  readManifest,
  SUCCESS_PATH,
  serviceJson,
  writeManifest,
} from './manifest.ts'
export { searchesByMonth } from './months.ts'
export { splitPath } from './path-map.ts'
export { secretCheck } from './secret-check.ts'
export {
  checkMaskKey,
  checkSettings,
  differInColumns,
  frozenSettings,
  type Settings,
  settingsDigest,
  settingsText,
} from './settings.ts'
export type { SealedShard, ShardList } from './shard-list.ts'
export { fitsManifest, keyDigest, SIGNATURE_BYTES, SIGNATURE_PATH, signatureOf } from './signature.ts'
export type { Omission } from './snapshot.ts'
