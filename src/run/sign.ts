import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { ExportError, type Pipeline, type Store } from '../core/index.ts'
import {
  keyDigest,
  MANIFEST_PATH,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  SUCCESS_PATH,
  signatureOf,
} from '../state/index.ts'
import type { HoldOptions } from './data-set/open-data-set.ts'
import { holdDataSet, openDataSet } from './data-set/open-data-set.ts'
import { namingLocations, pathIn } from './setting/locations.ts'
import { nothingExported, readVouchedManifest } from './vouched-manifest.ts'

export type Signed = {
  readonly pipeline: string
  /** Absolute path. */
  readonly signature: string
  /** In hex. */
  readonly manifestSha256: string
  readonly keySha256: string
  /** Whether everything that the file plans was exported, as `_SUCCESS` says. */
  readonly complete: boolean
  readonly shards: number
  readonly rows: number
  readonly bytes: number
}

/**
 * Signs the manifest, and with it the digest of every shard that it lists. Vouches for nothing that it has not looked
 * at, see {@link readVouchedManifest}; what is in the shards is for `verifyDataSet` to read.
 * @param key a private Ed25519 key
 * @throws ExportError `config` when nothing is exported, `damaged` when the data set is not as its manifest says,
 *   `locked` when a run is at work
 */
export function signDataSet(pipeline: Pipeline, key: KeyObject, options: HoldOptions): Promise<Signed> {
  return namingLocations(pipeline, async () => {
    // Looked for before the lock is taken, which makes a folder also where there is no data set.
    if ((await openDataSet(pipeline).size(MANIFEST_PATH)) === null) throw nothingExported(pipeline)
    return holdDataSet(pipeline, options, (store) => sign(pipeline, store, key))
  })
}

async function sign(pipeline: Pipeline, store: Store, key: KeyObject): Promise<Signed> {
  const { bytes, manifest } = await readVouchedManifest(pipeline, store)
  const size = await store.size(SIGNATURE_PATH)
  if (size !== null && size !== SIGNATURE_BYTES) throw isTaken()
  await store.writeWhole(SIGNATURE_PATH, [signatureOf(bytes, key)])
  const { shards, rows, bytes: shardBytes } = manifest.totals
  return {
    pipeline: pipeline.name,
    signature: pathIn(pipeline, SIGNATURE_PATH),
    manifestSha256: createHash('sha256').update(bytes).digest('hex'),
    keySha256: keyDigest(createPublicKey(key)),
    complete: (await store.size(SUCCESS_PATH)) !== null,
    shards,
    rows,
    bytes: shardBytes,
  }
}

function isTaken(): ExportError {
  return new ExportError(
    'config',
    'There is a file in the place of the signature that is none of spillway',
    SIGNATURE_PATH,
    'Move it away; nothing was changed.',
  )
}
