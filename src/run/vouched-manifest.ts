import { ExportError, type Pipeline, type Store } from '../core/index.ts'
import {
  type CheckpointState,
  isManifestOf,
  MANIFEST_PATH,
  type Manifest,
  parseManifest,
} from '../state/index.ts'
import { readBegunCheckpoint } from './admission/open-checkpoint.ts'

/** A manifest that the data set agrees with. */
export type VouchedManifest = {
  /** As it stands on the disk. */
  readonly bytes: Uint8Array
  readonly manifest: Manifest
  readonly state: CheckpointState
}

/**
 * Reads the manifest and looks whether it may be vouched for: it has to be, to the byte, the one that belongs to the
 * checkpoint, and every shard there at its full length. What is in the shards is not read.
 * @throws ExportError `config` when nothing is exported or the pipeline is another one, `damaged` when something is off
 */
export async function readVouchedManifest(pipeline: Pipeline, store: Store): Promise<VouchedManifest> {
  const bytes = await store.read(MANIFEST_PATH)
  if (bytes === null) throw nothingExported(pipeline)
  const manifest = parseManifest(bytes)
  const state = await readBegunCheckpoint(pipeline, store)
  if (state === null || !isManifestOf(bytes, pipeline, state)) throw notOfCheckpoint(pipeline)
  await requireShards(store, manifest)
  return { bytes, manifest, state }
}

/** @throws ExportError `damaged` with the first that is missing or has another length */
export async function requireShards(store: Store, { shards }: Manifest): Promise<void> {
  const looks = store.statCheck()
  try {
    for (const { path, bytes } of shards) looks.add({ path, bytes })
    const [first, ...others] = await looks.mismatches()
    if (first !== undefined) throw otherShards(first.path, others.length)
  } finally {
    await looks.close()
  }
}

export function nothingExported({ file }: Pipeline): ExportError {
  return new ExportError(
    'config',
    'There is no manifest, so there is nothing to vouch for yet',
    MANIFEST_PATH,
    `Run \`spillway run ${file}\` first.`,
  )
}

function notOfCheckpoint({ file }: Pipeline): ExportError {
  return new ExportError(
    'damaged',
    'The manifest is not what the checkpoint says: it was changed, or a run ended before it wrote its own',
    MANIFEST_PATH,
    `Run \`spillway run ${file}\`, which writes it anew, and asks for nothing that is exported.`,
  )
}

function otherShards(path: string, others: number): ExportError {
  const more = others === 0 ? '' : `, and ${others} more`
  return new ExportError(
    'damaged',
    `A shard is missing or not as long as the manifest says${more}`,
    path,
    'See what is off with `verify`, and mend it with `verify --fix`.',
  )
}
