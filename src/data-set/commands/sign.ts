import { createPublicKey, type KeyObject } from 'node:crypto'
import { ExportError, type Pipeline, runCommand, type Store } from '../../core/index.ts'
import {
  type CheckpointState,
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
import type { DataSet } from '../data-set.ts'
import { requireShards } from '../open/look.ts'
import { nothingExported, pathIn } from '../open-store.ts'
import type { WriteOptions } from '../options.ts'
import { whyStale } from '../plan/scope.ts'
import { readVerdict } from '../plan/verdict.ts'
import { isMarked } from '../settle/publish.ts'
import { FORMER_PATH } from '../settle/replace-manifest.ts'
import { inputOf, pages } from '../settle/summary-page.ts'
import type { SettledDataSet, WritableDataSet } from '../writable-data-set.ts'

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
 * @throws ExportError `damaged` when the data set differs; as {@link WritableDataSet.settled}
 */
export function signDataSet(
  dataSet: WritableDataSet,
  key: KeyObject,
  options: WriteOptions,
): Promise<Signed> {
  return dataSet.settled(options, (at) => sign(dataSet, at, key))
}

async function sign(
  { pipeline, planned }: DataSet,
  { store, state: settled }: SettledDataSet,
  key: KeyObject,
): Promise<Signed> {
  const { bytes, manifest, state } = await vouchedManifest(pipeline, store, settled)
  const size = await store.size(SIGNATURE_PATH)
  if (size !== null && size !== SIGNATURE_BYTES)
    throw new ExportError({
      kind: 'config',
      what: 'The file with the name of the signature is no signature of spillway',
      where: SIGNATURE_PATH,
      next: 'Move it away; nothing was changed.',
    })
  await store.replace(SIGNATURE_PATH, [signatureOf(bytes, key)])
  await store.remove(FORMER_PATH)
  const { shards, rows, bytes: shardBytes } = manifest.totals
  return {
    pipeline: pipeline.name,
    signature: pathIn(pipeline, SIGNATURE_PATH),
    manifestSha256: manifestDigest(bytes),
    keySha256: keyDigest(createPublicKey(key)),
    verdict: await readVerdict(store, planned, state),
    shards,
    rows,
    bytes: shardBytes,
  }
}

/**
 * Takes no lock: it works on read-only media, but not during a run. @param publicKey null: no signature is checked
 * @throws ExportError `config` when nothing is exported or signed, `damaged` when something does not fit, `locked`
 */
export function readEvidence(
  dataSet: DataSet,
  publicKey: KeyObject | null,
  version: string,
): Promise<Evidence> {
  return dataSet.named(() => read(dataSet, publicKey, version))
}

async function read(dataSet: DataSet, publicKey: KeyObject | null, version: string): Promise<Evidence> {
  const { pipeline, planned, store } = dataSet
  const { bytes, manifest, state } = await vouchedManifest(pipeline, store, dataSet.known())
  const signature = await store.read(SIGNATURE_PATH)
  const verdict = await readVerdict(store, planned, state)
  // The file itself may hold anything, even rows.
  const page = (await pages()).summaryPage(inputOf(planned, bytes, state, verdict, version))
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
  return {
    manifest,
    manifestBytes: bytes,
    signature,
    isMarked: await isMarked(store),
    verdict,
    summaryPage: Buffer.from(page),
    settings,
  }
}

/**
 * What may be signed: the manifest equals the checkpoint's to the byte, and every shard has its full length.
 * @throws ExportError `config` when nothing is exported, `damaged` when a check fails
 */
async function vouchedManifest(pipeline: Pipeline, store: Store, state: CheckpointState | null) {
  const bytes = await store.read(MANIFEST_PATH)
  if (bytes === null) throw nothingExported(pipeline)
  const manifest = parseManifest(bytes)
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
