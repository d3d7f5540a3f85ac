export { type ChainRecord, chainEntry } from './checkpoint/chain-record.ts'
export {
  beginCheckpoint,
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  findCheckpoint,
  readCheckpoint,
  readDataSetId,
  readHeader,
  saveCheckpoint,
} from './checkpoint/checkpoint.ts'
export { type CheckpointState, isKnown, type Omission } from './checkpoint/checkpoint-state.ts'
export { type SealedShard, splitPath } from './checkpoint/compact-collections.ts'
export { afterFeedPage, type FeedRecord, NEW_FEED, passOf } from './checkpoint/feed-record.ts'
export { decodeIds, encodeIds } from './checkpoint/page-ids.ts'
export {
  exportedOf,
  hasBegun,
  isOver,
  type PartitionRecord,
  type PartitionSums,
  stateOf,
  sumOfPartitions,
} from './checkpoint/partition-record.ts'
export { endEntry, NEW_RUN, type RunRecord, searchesByMonth } from './checkpoint/run-record.ts'
export { type Hold, takeLock } from './lock/lock.ts'
export { describeOwner, lockFileText, ownerStatus, parseLockFile } from './lock/lock-file.ts'
export { commitPath, LOG_FOLDER, listCommits, readBlob } from './log/commit-object.ts'
export { type Checkpoint, OpenLog, sweepLog } from './log/open-log.ts'
export {
  addedOf,
  fitsManifest,
  holdingsOf,
  isManifestOf,
  keyDigest,
  MANIFEST_PATH,
  MANIFEST_START,
  type Manifest,
  type ManifestShard,
  manifestShard,
  manifestShards,
  parseManifest,
  type RetiredQuery,
  readManifest,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  SUCCESS_PATH,
  serviceJson,
  signatureOf,
  writeManifest,
} from './manifest.ts'
export {
  asExported,
  checkMaskKey,
  checkSettings,
  differInColumns,
  frozenSettings,
  type Settings,
  secretCheck,
  settingsDigest,
  settingsText,
} from './settings.ts'
export {
  newList,
  parseSuppression,
  type StoredList,
  SUPPRESSION_PATH,
  SUPPRESSION_START,
  suppressionText,
  withDigests,
  withKey,
} from './suppression-file.ts'
