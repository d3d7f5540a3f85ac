import { ExportError, type Store } from '../../../core/index.ts'
import { QUARANTINE_FOLDER, quarantinePath } from '../../../load/index.ts'
import { type CheckpointState, type Journal, splitPath } from '../../../state/index.ts'
import type { People } from './people.ts'

export type OtherItems = {
  readonly partition: string
  /** The lines that are left of committed items. */
  readonly lines: Buffer
  readonly removed: number
  /** Whether they are of what is exported of the partition again. */
  readonly isRedo: boolean
}

export async function* itemsOfPeople(
  store: Store,
  log: Pick<Journal, 'read'>,
  state: CheckpointState,
  people: People,
): AsyncGenerator<OtherItems> {
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  for (const [partition, { quarantineEnd }] of [...state.partitions]) {
    const path = quarantinePath(partition)
    const hasFile = quarantineEnd > 0 && names.has(splitPath(path)[1])
    const file = hasFile ? await store.read(path, 0, quarantineEnd) : null
    for (const { rejected, isRedo } of [
      { rejected: state.rejected, isRedo: false },
      { rejected: state.redo.rejected, isRedo: true },
    ]) {
      const committed = isRedo || file === null ? [] : [file]
      for (const ref of rejected.get(partition) ?? [])
        committed.push((await log.read(ref)) ?? lostInLog('Rejected items'))
      const { lines, removed } = others(Buffer.concat(committed), people, path)
      if (removed > 0) yield { partition, lines, removed, isRedo }
    }
  }
}

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

export function lostInLog(what: 'Rows' | 'Rejected items'): never {
  throw new ExportError({
    kind: 'damaged',
    what: `${what} that wait in the log are lost or changed`,
    where: '_state/log',
    next: 'Run the pipeline first: it exports the partitions concerned anew. Then `forget` again.',
  })
}
