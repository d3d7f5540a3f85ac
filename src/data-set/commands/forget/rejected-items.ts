import { ExportError, type Store } from '../../../core/index.ts'
import { QUARANTINE_FOLDER, quarantinePath } from '../../../load/index.ts'
import {
  type CheckpointState,
  type ForgetEntry,
  type Journal,
  presentOf,
  splitPath,
} from '../../../state/index.ts'
import type { Swap } from '../../swap.ts'
import type { People } from './people.ts'

export type OtherItems = {
  readonly partition: string
  /** The lines that are left of committed items. */
  readonly lines: Buffer
  readonly removed: number
  /** Whether nothing of the file is of the present export of the partition, which is exported again. */
  readonly isFormer: boolean
}

export async function* itemsOfPeople(
  store: Store,
  log: Pick<Journal, 'read'>,
  state: CheckpointState,
  people: People,
): AsyncGenerator<OtherItems> {
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  for (const [partition, exported] of [...state.partitions]) {
    const path = quarantinePath(partition)
    const waiting = state.rejected.get(partition) ?? []
    const file = names.has(splitPath(path)[1]) ? await store.read(path) : null
    if (file === null && waiting.length === 0) continue
    // Until it is written for the first time again, the file holds the items of the former export.
    const present = presentOf(state, partition)?.quarantineEnd ?? 0
    const isFormer = state.redo.partitions.has(partition) && present === 0 && waiting.length === 0
    const end = isFormer ? exported.quarantineEnd : present
    const committed = [file?.subarray(0, end) ?? new Uint8Array()]
    for (const ref of waiting) committed.push((await log.read(ref)) ?? lostItems())
    const { lines, removed } = others(Buffer.concat(committed), people, path)
    if (removed > 0) yield { partition, lines, removed, isFormer }
  }
}

/** What to write and to commit of the items that are left. Their files follow: see `bringQuarantine`. */
export function otherItems(
  items: readonly OtherItems[],
): Changes & Pick<Swap<unknown>, 'files'> & { readonly blobs: readonly Buffer[] } {
  // The next item of one that is exported again replaces the file.
  const former = items.filter(({ isFormer }) => isFormer)
  const others = items.filter(({ isFormer }) => !isFormer)
  const counts = ({ partition, removed }: OtherItems) => ({ partition, rows: 0, quarantined: removed })
  return {
    partitions: [
      ...former.map((each) => ({ ...counts(each), former: true as const })),
      ...others.map(counts),
    ],
    files: former.map(({ partition, lines }) => [quarantinePath(partition), [lines]]),
    rejected: others.map(({ partition }, blob) => ({ partition, blob })),
    blobs: others.map(({ lines }) => lines),
  }
}

type Changes = NonNullable<ForgetEntry['changes']>

function others(bytes: Buffer, people: People, path: string): { lines: Buffer; removed: number } {
  const lines = bytes.toString().split('\n').filter(Boolean)
  const left = lines.filter((line) => !people.has(parsed(line, path).item?.identity_name))
  const text = left.map((line) => `${line}\n`).join('')
  return { lines: Buffer.from(text), removed: lines.length - left.length }
}

function parsed(line: string, path: string): { readonly item?: { readonly identity_name?: unknown } | null } {
  try {
    return JSON.parse(line)
  } catch {
    throw new ExportError({
      kind: 'damaged',
      what: 'The quarantine file has a line that cannot be read',
      where: path,
      next: 'Restore the file, or move it out of the data set, then run it again.',
    })
  }
}

function lostItems(): never {
  throw new ExportError({
    kind: 'damaged',
    what: 'Rejected items that wait in the log are lost or changed',
    where: '_state/log',
    next: 'Run the pipeline first: it exports the partitions concerned anew. Then `forget` again.',
  })
}
