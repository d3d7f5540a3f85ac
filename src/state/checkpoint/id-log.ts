import { crc32 } from 'node:zlib'
import { type IdMark, type Log, type PageIds, type Store, withPage } from '../../core/index.ts'

/**
 * The ids of a chain's last pages on disk. By them the next run detects rows that the service repeats. Each page
 * appends its ids to one of two files. When the file is full, the other file starts with the ids that are still needed.
 * The chain's last page entry says which bytes are valid: {@link IdMark}.
 */
export type IdLog = {
  /** The ids of the last pages. */
  readonly recent: readonly PageIds[]
  /** Makes a page's ids durable. @returns the mark to commit with the page; null: unchanged */
  append(page: PageIds): Promise<IdMark | null>
  /** Removes the files of a chain that has ended. */
  remove(): Promise<void>
  close(): Promise<void>
}

export const ID_FOLDER = '_state/ids'

// About a dozen full pages. A switch writes only the ids of few pages again.
const SWITCH_BYTES = 1 << 20

/**
 * Opens the ids of a chain.
 * @param mark null: no ids yet
 * @returns null if the ids are lost
 */
export async function openIdLog(store: Store, chain: number, mark: IdMark | null): Promise<IdLog | null> {
  const kept = mark === null ? [] : await readIds(store, chain, mark)
  return kept === null ? null : new TwoFiles(store, chain, mark, kept)
}

/** Opens an empty log for a chain whose ids are lost. Such a chain restarts after its last row. */
export function newIdLog(store: Store, chain: number): IdLog {
  return new TwoFiles(store, chain, null, [])
}

/** Removes all files of ids except these paths. @param neededPaths called only if there are files */
export async function sweepIds(store: Store, neededPaths: () => ReadonlySet<string>): Promise<void> {
  const names = await store.list(ID_FOLDER)
  if (names.length === 0) return
  const needed = neededPaths()
  for (const name of names.filter(isIdFile)) {
    const path = `${ID_FOLDER}/${name}`
    if (!needed.has(path)) await store.remove(path)
  }
}

/** `_state/ids/12.0` */
export function idPath(chain: number, file: number): string {
  return `${ID_FOLDER}/${chain}.${file}`
}

/** Whether a name is that of a file of ids, see {@link idPath}. */
export function isIdFile(name: string): boolean {
  return /^\d{1,16}\.[01]$/.test(name)
}

class TwoFiles implements IdLog {
  recent: readonly PageIds[]
  readonly #store: Store
  readonly #chain: number
  #mark: IdMark | null
  #log: Log | null = null

  constructor(store: Store, chain: number, mark: IdMark | null, recent: readonly PageIds[]) {
    this.#store = store
    this.#chain = chain
    this.#mark = mark
    this.recent = recent
  }

  async append(page: PageIds): Promise<IdMark | null> {
    const known = withPage(this.recent, page)
    if (known === this.recent) return null
    const mark = this.#mark ?? { file: 1, end: SWITCH_BYTES, crc: 0 }
    const isFull = mark.end >= SWITCH_BYTES
    const file = isFull ? 1 - mark.file : mark.file
    const start = isFull ? { end: 0, crc: 0 } : mark
    const log = await this.#openAt(file, start.end, isFull)
    const blocks = (isFull ? known : [page]).flatMap(blockOf)
    await log.append(blocks)
    await log.fsync()
    const crc = blocks.reduce((sum, block) => crc32(block, sum), start.crc)
    this.#mark = { file, end: log.size, crc }
    this.recent = known
    return this.#mark
  }

  async remove(): Promise<void> {
    await this.close()
    if (this.#mark === null) return
    for (const file of [0, 1]) await this.#store.remove(idPath(this.#chain, file))
    this.#mark = null
  }

  async close(): Promise<void> {
    await this.#log?.close()
    this.#log = null
  }

  async #openAt(file: number, end: number, isOther: boolean): Promise<Log> {
    if (isOther) await this.close()
    this.#log ??= await this.#store.openLog(idPath(this.#chain, file), end)
    return this.#log
  }
}

const HEADER_WORDS = 2

/** A header with the number of words of rows and of rejected items, then the words of both. */
function blockOf({ rows, refused }: PageIds): Uint8Array[] {
  return [new Int32Array([rows.length, refused.length]), rows, refused]
    .filter(({ length }) => length > 0)
    .map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength))
}

async function readIds(store: Store, chain: number, mark: IdMark): Promise<readonly PageIds[] | null> {
  const path = idPath(chain, mark.file)
  const size = await store.size(path)
  if (size === null || size < mark.end) return null
  const bytes = await store.readRange(path, 0, mark.end)
  if (bytes.byteLength < mark.end || crc32(bytes) !== mark.crc) return null
  // A copy, aligned to words.
  const words = new Int32Array(bytes.slice().buffer)
  let recent: readonly PageIds[] = []
  for (let start = 0; start < words.length; ) {
    const first = start + HEADER_WORDS
    const middle = first + words[start]!
    const end = middle + words[start + 1]!
    recent = withPage(recent, { rows: words.slice(first, middle), refused: words.slice(middle, end) })
    start = end
  }
  return recent
}
