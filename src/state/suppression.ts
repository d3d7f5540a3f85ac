import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { ExportError, type OwnedStore, type Store } from '../core/index.ts'
import type { SuppressList } from '../rows/index.ts'
import type { CheckpointState } from './checkpoint/fold-journal.ts'
import type { Entry } from './journal-entry.ts'
import type { Journal } from './log/journal.ts'
import { encodeLine, NEWLINE, parseLine } from './log/lines.ts'
import { keyCheck } from './settings.ts'

/**
 * The key of the digests, which whoever may read the log does not get: guesses can be tested with it. And the digests, for
 * a data set that has no log: before its first run, after `--fresh`, or when the state is lost.
 */
export const SUPPRESSION_PATH = '_state/suppression.json'

const suppressionFile = z.object({ key: z.base64().length(44), digests: z.array(z.string()) })

export function newSuppression(): SuppressList {
  return { key: randomBytes(32), digests: [] }
}

/** The list with more digests, in an order that says nothing; the same object if it has them all. */
export function withDigests(list: SuppressList, digests: readonly string[]): SuppressList {
  const all = new Set([...list.digests, ...digests])
  return all.size === list.digests.length ? list : { key: list.key, digests: [...all].sort() }
}

/**
 * The people whom the data set keeps out; null: nobody was forgotten.
 * @throws ExportError `damaged` when the key of those in the log is lost, so that they would come back
 */
export async function readSuppression(
  store: Store,
  state: Pick<CheckpointState, 'suppression'> | null,
): Promise<SuppressList | null> {
  return joined(await readFile(store), state?.suppression ?? null)
}

/** Gives file and log the people of both: one of them may be lost. @throws as {@link readSuppression} */
export async function bringSuppression(store: OwnedStore, journal: Journal): Promise<SuppressList | null> {
  const { suppression } = journal.state
  const file = await readFile(store)
  const list = joined(file, suppression)
  if (list === null) return null
  // A first `forget` was cut before its commit.
  if (list.digests.length === 0) await store.remove(SUPPRESSION_PATH)
  else if (list !== file) await store.replace(...suppressionFileOf(list))
  if (list.digests.length > (suppression?.digests.length ?? 0)) await journal.append([suppressionEntry(list)])
  return list
}

export function suppressionEntry({ key, digests }: SuppressList): Entry<'suppression'> {
  return { kind: 'suppression', key_check: keyCheck(key), digests }
}

export function suppressionFileOf({ key, digests }: SuppressList): Parameters<OwnedStore['replace']> {
  const list = { key: Buffer.from(key).toString('base64'), digests }
  return [SUPPRESSION_PATH, [encodeLine(list, 0).line], 'private']
}

async function readFile(store: Store): Promise<SuppressList | null> {
  const bytes = await store.read(SUPPRESSION_PATH)
  if (bytes === null) return null
  const isWhole = bytes.at(-1) === NEWLINE
  const list = suppressionFile.safeParse(parseLine(Buffer.from(bytes.subarray(0, -1)), 0)?.value).data
  if (!isWhole || list === undefined) throw lostList('cannot be read, or was changed')
  return { key: Buffer.from(list.key, 'base64'), digests: list.digests }
}

function joined(file: SuppressList | null, logged: CheckpointState['suppression']): SuppressList | null {
  if (logged === null) return file
  if (file === null || keyCheck(file.key) !== logged.key_check) throw lostList('is missing, or another one')
  return withDigests(file, logged.digests)
}

function lostList(how: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `The list of forgotten people ${how}`,
    where: SUPPRESSION_PATH,
    next: 'Restore it from a backup: without it, their rows would come back. `--fresh` does not need it once it is removed.',
  })
}
