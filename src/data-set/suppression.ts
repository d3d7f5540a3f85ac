import {
  ExportError,
  locationOf,
  type OwnedStore,
  type Pipeline,
  type Store,
  type SuppressList,
} from '../core/index.ts'
import {
  type CheckpointState,
  parseSuppression,
  type StoredList,
  SUPPRESSION_PATH,
  suppressionText,
  withKey,
} from '../state/index.ts'
import type { DataSetOptions } from './options.ts'

/**
 * The people whose items a run drops: those whom the data set has forgotten.
 * @throws ExportError `config` when the list needs a mask key that is not there; `damaged` when it cannot be read
 */
export async function readSuppression(
  pipeline: Pipeline,
  store: Store,
  { maskKey, readSecret }: Pick<DataSetOptions, 'maskKey' | 'readSecret'>,
): Promise<readonly SuppressList[]> {
  const { extract, transform } = pipeline
  if (extract.resource === 'reports') return []
  const lists = (await readForgotten(store)) ?? []
  const needsMaskKey = lists.some(({ key }) => 'mask_key_check' in key)
  const key = maskKey ?? (needsMaskKey ? keyOf(await readSecret(transform.maskKeyEnv)) : null)
  return lists.map((list) => withKey(list, key) ?? needsKey(pipeline, key !== null))
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
export async function readForgotten(store: Store): Promise<readonly StoredList[] | null> {
  const bytes = await store.read(SUPPRESSION_PATH)
  if (bytes === null) return null
  return parseSuppression(Buffer.from(bytes).toString()) ?? lostList('cannot be read, or was changed')
}

/**
 * @param found the list of the data set; null: there is none
 * @throws ExportError `damaged` when the checkpoint knows that people were forgotten, and there is no list of them
 */
export function requireForgotten(found: readonly StoredList[] | null, { erasures }: CheckpointState): void {
  if (found === null && erasures.length > 0) lostList('is missing')
}

function lostList(how: string): never {
  throw new ExportError({
    kind: 'damaged',
    what: `The list of forgotten people ${how}`,
    where: SUPPRESSION_PATH,
    next: 'Restore it from a backup: without it, their rows would come back. `--fresh` does not need it once it is removed.',
  })
}

export async function writeForgotten(store: OwnedStore, lists: readonly StoredList[]): Promise<void> {
  await store.replace(SUPPRESSION_PATH, [suppressionText(lists)], 'private')
}
