import { createPublicKey, type KeyObject } from 'node:crypto'
import { ExportError, type OwnedStore, type Pipeline, runCommand, type Store } from '../../core/index.ts'
import {
  fitsManifest,
  isManifestOf,
  keyDigest,
  MANIFEST_PATH,
  manifestDigest,
  parseManifest,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  settingsText,
  signatureOf,
  type Verdict,
} from '../../state/index.ts'
import type { Evidence } from '../../summary/index.ts'
import type { Described } from '../described.ts'
import { type ChangeOptions, holdSettled } from '../hold.ts'
import { readState } from '../open/find-state.ts'
import { requireShards } from '../open/look.ts'
import { requireOwnCheckpoint } from '../open/open-checkpoint.ts'
import { type HoldOptions, namingLocations, nothingExported, openStore, pathIn } from '../open-store.ts'
import { whyStale } from '../plan/scope.ts'
import { standingOf, verdictOf } from '../plan/verdict.ts'
import { namePipeline } from '../queries.ts'
import { pageOfManifest } from './summary-page/write-summary-page.ts'

export type Signed = {
  readonly pipeline: string
  /** Absolute path. */
  readonly signature: string
  /** In hex. */
  readonly manifestSha256: string
  readonly keySha256: string
  readonly verdict: Verdict
  readonly shards: number
  readonly rows: number
  readonly bytes: number
}

/**
 * Settles the data set, then signs its manifest and with it the digest of every shard. @param key a private Ed25519 key
 * @throws ExportError `config` when nothing is exported, `damaged` when the data set differs, `locked` during a run
 */
export function signDataSet(
  { pipeline: given, planned }: Pick<Described, 'pipeline' | 'planned'>,
  key: KeyObject,
  options: HoldOptions & ChangeOptions,
): Promise<Signed> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    // Before the lock, which would create the folder, also if there is no data set.
    if ((await openStore(pipeline).size(MANIFEST_PATH)) === null) throw nothingExported(pipeline)
    return holdSettled(pipeline, options, (store) => sign({ pipeline, planned }, store, key))
  })
}

async function sign(
  { pipeline, planned }: Pick<Described, 'pipeline' | 'planned'>,
  store: OwnedStore,
  key: KeyObject,
): Promise<Signed> {
  const { bytes, manifest, state } = await readVouchedManifest(pipeline, store)
  const size = await store.size(SIGNATURE_PATH)
  if (size !== null && size !== SIGNATURE_BYTES)
    throw new ExportError({
      kind: 'config',
      what: 'The file with the name of the signature is no signature of spillway',
      where: SIGNATURE_PATH,
      next: 'Move it away; nothing was changed.',
    })
  await store.replace(SIGNATURE_PATH, [signatureOf(bytes, key)])
  await store.replace(SIGNED_PATH, [manifestDigest(bytes)])
  const { shards, rows, bytes: shardBytes } = manifest.totals
  return {
    pipeline: pipeline.name,
    signature: pathIn(pipeline, SIGNATURE_PATH),
    manifestSha256: manifestDigest(bytes),
    keySha256: keyDigest(createPublicKey(key)),
    verdict: verdictOf(planned, state, await standingOf(store, state, { fault: null, isHeld: false })),
    shards,
    rows,
    bytes: shardBytes,
  }
}

/** The SHA-256 of the manifest that was signed: a signature alone tells it only to who has the public key. */
const SIGNED_PATH = '_state/signed'

/** Whether the manifest has changed since it was signed here: its signature went with it. */
export async function isSignatureStale(store: Store, manifest: Uint8Array): Promise<boolean> {
  const signed = await store.read(SIGNED_PATH)
  return signed !== null && Buffer.from(signed).toString() !== manifestDigest(manifest)
}

/**
 * Takes no lock: it works on read-only media, but not during a run. @param publicKey null: no signature is checked
 * @throws ExportError `config` when nothing is exported or signed, `damaged` when something does not fit, `locked`
 */
export function readEvidence(
  described: Pick<Described, 'pipeline' | 'planned'>,
  publicKey: KeyObject | null,
  version: string,
): Promise<Evidence> {
  const { pipeline } = described
  return namingLocations(pipeline, () => read(described, openStore(pipeline), publicKey, version))
}

async function read(
  { pipeline, planned }: Pick<Described, 'pipeline' | 'planned'>,
  store: Store,
  publicKey: KeyObject | null,
  version: string,
): Promise<Evidence> {
  const { bytes, manifest, state } = await readVouchedManifest(pipeline, store)
  const signature = await store.read(SIGNATURE_PATH)
  const standing = await standingOf(store, state, { fault: null, isHeld: false })
  const verdict = verdictOf(planned, state, standing)
  // The file itself may hold anything, even rows.
  const summaryPage = await pageOfManifest(planned, bytes, state, verdict, version)
  const again = await store.read(MANIFEST_PATH)
  if (again === null || !Buffer.from(again).equals(bytes))
    throw new ExportError({
      kind: 'locked',
      what: 'A run wrote another manifest meanwhile',
      where: MANIFEST_PATH,
      next: 'Wait for runs to end, and sign again.',
    })
  if (signature === null)
    throw new ExportError({
      kind: 'config',
      what: `The manifest is not signed, so nothing shows that it is untouched${whyStale(manifest)}`,
      where: SIGNATURE_PATH,
      next: `Run \`spillway sign ${pipeline.file} --key <private key>\` first.`,
    })
  if (publicKey !== null && !fitsManifest(signature, bytes, publicKey))
    throw new ExportError({
      kind: 'damaged',
      what: `The signature does not fit the manifest under this key${whyStale(manifest)}`,
      where: SIGNATURE_PATH,
      next: 'Give the public key of the one that signed it, or sign it again.',
    })
  const settings = settingsText(state.header.settings)
  const { isMarked } = standing
  return { manifest, manifestBytes: bytes, signature, isMarked, verdict, summaryPage, settings }
}

/**
 * What may be signed: the manifest equals the checkpoint's to the byte, and every shard has its full length.
 * @throws ExportError `config` when nothing is exported or the pipeline is another one, `damaged` when a check fails
 */
async function readVouchedManifest(pipeline: Pipeline, store: Store) {
  const bytes = await store.read(MANIFEST_PATH)
  if (bytes === null) throw nothingExported(pipeline)
  const manifest = parseManifest(bytes)
  const state = await readState(store)
  if (state !== null) requireOwnCheckpoint(pipeline, state)
  if (state === null || !isManifestOf(bytes, pipeline, state))
    throw new ExportError({
      kind: 'damaged',
      what: 'The manifest does not match the checkpoint: it was changed, or a run ended before it wrote its own',
      where: MANIFEST_PATH,
      next: `Run \`${runCommand(pipeline)}\`, which writes it anew and requests nothing that is exported.`,
    })
  await requireShards(store, state, () => false)
  return { bytes, manifest, state }
}
