import type { KeyObject } from 'node:crypto'
import { ExportError, type Pipeline, REPORT_PATH, type Store } from '../core/index.ts'
import type { Evidence } from '../report/index.ts'
import { fitsManifest, MANIFEST_PATH, SIGNATURE_PATH, SUCCESS_PATH, settingsText } from '../state/index.ts'
import { completenessOf } from './completeness.ts'
import { isReport } from './data-set/data-set.ts'
import { openDataSet } from './data-set/open-data-set.ts'
import { namingLocations } from './setting/locations.ts'
import { readVouchedManifest } from './vouched-manifest.ts'

/**
 * Reads what shows that an export is complete and untouched. Changes nothing and takes no lock, so it works where nothing
 * can be written, but not while a run is at work.
 * @param maskKey where queries are named by digests; null: what is complete is told without figures then
 * @param publicKey the signature has to fit it; null: nobody knows what it has to fit
 * @throws ExportError `config` when nothing is exported or signed, `damaged` when the data set or the signature is not as
 *   the manifest says, `locked` when a run wrote another manifest meanwhile
 */
export function readEvidence(
  pipeline: Pipeline,
  publicKey: KeyObject | null,
  maskKey: Uint8Array | null = null,
): Promise<Evidence> {
  return namingLocations(pipeline, () => read(pipeline, openDataSet(pipeline), publicKey, maskKey))
}

async function read(
  pipeline: Pipeline,
  store: Store,
  publicKey: KeyObject | null,
  maskKey: Uint8Array | null,
): Promise<Evidence> {
  const { bytes, manifest, state } = await readVouchedManifest(pipeline, store)
  const signature = await store.read(SIGNATURE_PATH)
  // What else lies there may hold anything, rows too.
  const report = (await isReport(store)) === true ? await store.read(REPORT_PATH) : null
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const completeness = await completenessOf(pipeline, maskKey, store, state)
  const again = await store.read(MANIFEST_PATH)
  if (again === null || !Buffer.from(again).equals(bytes)) throw changedMeanwhile()
  if (signature === null) throw notSigned(pipeline)
  if (publicKey !== null && !fitsManifest(signature, bytes, publicKey)) throw doesNotFit()
  const settings = settingsText(state.header.settings)
  return { manifest, manifestBytes: bytes, signature, isMarked, ...completeness, report, settings }
}

function notSigned({ file }: Pipeline): ExportError {
  return new ExportError(
    'config',
    'The manifest is not signed, so nothing shows that it is untouched',
    SIGNATURE_PATH,
    `Run \`spillway sign ${file} --key <private key>\` first.`,
  )
}

function doesNotFit(): ExportError {
  return new ExportError(
    'damaged',
    'The signature does not fit the manifest under this key',
    SIGNATURE_PATH,
    'Give the public key of the one that signed it, or sign it again.',
  )
}

function changedMeanwhile(): ExportError {
  return new ExportError(
    'locked',
    'A run wrote another manifest meanwhile',
    MANIFEST_PATH,
    'Wait for runs to end, and sign again.',
  )
}
