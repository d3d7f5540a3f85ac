import {
  ExportError,
  locationOf,
  type OwnedStore,
  type Pipeline,
  rulesOf,
  type Store,
} from '../../core/index.ts'
import type { SuppressList } from '../../rows/index.ts'
import {
  type CheckpointState,
  checksumOf,
  NEXT_SUPPRESSION_PATH,
  parseSuppression,
  SUPPRESSION_PATH,
  type SuppressionList,
  suppressionText,
  withKey,
} from '../../state/index.ts'
import type { DataSetOptions } from '../options.ts'

export type Suppression = {
  readonly lists: readonly SuppressList[]
  /** As a checkpoint names them; null: there are none. */
  readonly name: string | null
}

/** @throws ExportError `config` when the mask key is not there; `damaged` when it is not the list of the checkpoint */
export async function readSuppression(
  pipeline: Pipeline,
  store: Store,
  state: Pick<CheckpointState, 'suppression'> | null,
  { maskKey, readSecret }: Pick<DataSetOptions, 'maskKey' | 'readSecret'>,
): Promise<Suppression> {
  const { extract, transform } = pipeline
  if (!rulesOf(extract.resource).holdsPeople) return { lists: [], name: null }
  const stored = await currentSuppression(store, state ?? { suppression: null })
  const needsMaskKey = stored?.some(({ key }) => 'mask_key_check' in key) === true
  const key = maskKey ?? (needsMaskKey ? keyOf(await readSecret(transform.maskKeyEnv)) : null)
  const lists = stored?.map((list) => withKey(list, key) ?? needsKey(pipeline, key !== null)) ?? []
  return { lists, name: nameOf(stored) }
}

/** Like the key of the `hmac` policies, which these digests share. */
function keyOf(text: string | null): Uint8Array | null {
  return text === null ? null : new TextEncoder().encode(text.replace(/[\r\n]+$/, ''))
}

function needsKey(pipeline: Pipeline, isOther: boolean): never {
  const { maskKeyEnv } = pipeline.transform
  throw new ExportError({
    kind: 'config',
    what: isOther
      ? `The key in ${maskKeyEnv} is not the one under which people were forgotten`
      : `People were forgotten under a mask key, and ${maskKeyEnv} is not set`,
    where: locationOf(pipeline, 'transform.mask_key_env'),
    next: `Set ${maskKeyEnv} to that key: without it, their rows would come back.`,
  })
}

/** The list of the data set; null: nobody was forgotten. @throws ExportError `damaged` */
export async function readSuppressionFile(
  store: Store,
  path = SUPPRESSION_PATH,
): Promise<readonly SuppressionList[] | null> {
  const bytes = await store.read(path)
  if (bytes === null) return null
  const lists = parseSuppression(Buffer.from(bytes).toString())
  if (lists === null) throw lostList('cannot be read, or was changed')
  return lists
}

/** Also after the crash of a change. @throws ExportError `damaged` when there is none, so that people would come back */
export async function currentSuppression(
  store: Store,
  { suppression: name }: Pick<CheckpointState, 'suppression'>,
): Promise<readonly SuppressionList[] | null> {
  const lists = await readSuppressionFile(store)
  if (name === null || nameOf(lists) === name) return lists
  const next = await readSuppressionFile(store, NEXT_SUPPRESSION_PATH)
  if (nameOf(next) !== name) throw lostList('is missing, or another one')
  return next
}

/** Makes that list the one of the data set. @throws ExportError as {@link currentSuppression} */
export async function bringSuppression(
  store: OwnedStore,
  state: Pick<CheckpointState, 'suppression'>,
): Promise<void> {
  if ((await store.size(NEXT_SUPPRESSION_PATH)) === null) return void (await currentSuppression(store, state))
  const lists = await currentSuppression(store, state)
  if (lists !== null) await store.replace(...suppressionFile(lists, SUPPRESSION_PATH))
  await store.remove(NEXT_SUPPRESSION_PATH)
}

export function nameOf(lists: readonly SuppressionList[] | null): string | null {
  return lists === null ? null : checksumOf(lists)
}

function lostList(how: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `The list of forgotten people ${how}`,
    where: SUPPRESSION_PATH,
    next: 'Restore it from a backup: without it, their rows would come back. `--fresh` does not need it once it is removed.',
  })
}

/** @param path `NEXT_SUPPRESSION_PATH`, until the checkpoint names the list */
export function suppressionFile(
  lists: readonly SuppressionList[],
  path: string,
): [path: string, chunks: string[], access: 'private'] {
  return [path, [suppressionText(lists)], 'private']
}
