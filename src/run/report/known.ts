import type { Sums } from '../../core/index.ts'
import {
  type CheckpointState,
  hasBegun,
  type Manifest,
  NEW_RUN,
  type RunRecord,
  settingsDigest,
  splitPath,
} from '../../state/index.ts'

/** What is known of a data set, from its checkpoint or, where that was left behind, from its manifest. */
export type Known = {
  readonly from: 'checkpoint' | 'manifest'
  readonly configDigest: string
  readonly runs: readonly Omit<RunRecord, 'run' | 'months'>[]
  readonly quarantined: number
  readonly repeated: number
  /** What rows come to; of fewer rows than there are, where that is not known of all. */
  readonly sums: Sums
  readonly failed: readonly { readonly partition: string; readonly kind: string }[]
  /** Rows by query and window, made as they are asked for; null: what is known does not tell. */
  partitions: (() => Iterable<KnownPartition>) | null
  /** Made as they are asked for. */
  shards(): Iterable<KnownShard>
}

export type KnownPartition = { readonly query: string; readonly window: string; readonly rows: number }

export type KnownShard = {
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
}

/** @param sums as the state has them, or counted anew */
export function knownFromState(state: CheckpointState, sums: Sums): Known {
  const failed: { partition: string; kind: string }[] = []
  let [quarantined, repeated] = [0, 0]
  for (const [partition, record] of state.partitions) {
    quarantined += record.quarantined
    repeated += record.repeated
    if (record.state === 'failed') failed.push({ partition, kind: record.error?.kind ?? 'unknown' })
  }
  return {
    from: 'checkpoint',
    configDigest: settingsDigest(state.header.settings),
    runs: state.runs,
    quarantined,
    repeated,
    sums,
    failed,
    *partitions() {
      for (const [query, windows] of state.partitions.branches) {
        for (const [window, record] of windows)
          if (hasBegun(record)) yield { query, window, rows: record.rows }
      }
    },
    shards: () => state.shards,
  }
}

/** @param sums counted from the files, as the manifest has none */
export function knownFromManifest(manifest: Manifest, sums: Sums): Known {
  const { shards, totals, runs, config_digest } = manifest
  const isTold = shards.every(({ partitions }) => partitions.length === 1)
  return {
    from: 'manifest',
    configDigest: config_digest,
    runs: runs.map(({ status, ...run }) => ({
      ...NEW_RUN,
      ...run,
      status: STATUSES.find((known) => known === status) ?? null,
    })),
    quarantined: totals.quarantined,
    repeated: totals.repeated,
    sums,
    failed: [],
    partitions: isTold
      ? function* () {
          for (const { partitions, rows } of shards) {
            const [query, window] = splitPath(partitions[0]!)
            yield { query, window, rows }
          }
        }
      : null,
    shards: () => shards,
  }
}

const STATUSES = ['complete', 'failed', 'budget', 'interrupted'] as const
