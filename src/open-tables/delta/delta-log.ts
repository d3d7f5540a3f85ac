import { type OwnedStore, type Store, sideBySide } from '../../core/index.ts'
import {
  committedByOthers,
  DELTA_FOLDER,
  type Digests,
  damagedTable,
  markOf,
  requireMarked,
  requireNotLater,
  sha256Of,
  type TableMark,
  type TableOwner,
  type TableShard,
} from '../table.ts'

const COMMIT = /^\d{20}\.json$/
/** Commits, and what other programs write beside them: checkpoints, checksums. */
const OF_A_LOG = /^(?:\d{20}\.|_last_checkpoint$)/

/** Every commit of Spillway begins with a `commitInfo` of this engine and of the data set. */
export const ENGINE = 'Spillway'

function startOf({ dataSetId }: TableOwner): string {
  const start = `{"commitInfo":{"engineInfo":"${ENGINE}","operationParameters":{"data_set_id":"`
  return dataSetId === null ? start : `${start}${dataSetId}"`
}

export const SHA256_TAG = 'spillway.sha256'

type Action = {
  readonly add?: {
    readonly path: string
    readonly size: number
    readonly stats: string
    readonly tags: Readonly<Record<string, string>>
  }
  readonly metaData?: { readonly id: string; readonly createdTime: number; readonly schemaString: string }
  readonly remove?: { readonly path: string }
}

export type DeltaState = {
  readonly mark: TableMark
  /** When the log began, epoch ms. */
  readonly begunMs: number
  /** Of the table, as Delta has it. */
  readonly id: string
  readonly schema: string
  readonly shards: ReadonlyMap<string, TableShard>
  readonly files: Digests
}

export function commitPath(version: number): string {
  return `${DELTA_FOLDER}/${String(version).padStart(20, '0')}.json`
}

/**
 * Reads all commits; null: there is no table. @param marks null: it is taken as it is
 * @throws ExportError `storage`: another program has committed; `damaged`: not as it was written
 */
export async function readLog(store: Store, marks: readonly TableMark[] | null): Promise<DeltaState | null> {
  const names = await store.list(DELTA_FOLDER)
  if (names.length === 0) return null
  const other = names.find((name) => !COMMIT.test(name))
  if (other !== undefined) throw committedByOthers(`${DELTA_FOLDER}/${other}`)
  const last = names.at(-1)!
  requireNotLater(`${DELTA_FOLDER}/${last}`, Number(last.slice(0, 20)), marks)
  const texts: string[] = []
  const digests: string[] = []
  await sideBySide(names.entries(), async ([i, name]) => {
    const bytes = (await store.read(`${DELTA_FOLDER}/${name}`)) ?? new Uint8Array()
    texts[i] = Buffer.from(bytes).toString()
    digests[i] = sha256Of([bytes])
  })
  const files = new Map(names.map((name, i) => [`${DELTA_FOLDER}/${name}`, digests[i]!]))
  const mark = markOf(names.length - 1, files)
  if (marks !== null) requireMarked(`${DELTA_FOLDER}/${last}`, mark, marks)
  return { mark, files, ...replay(names, texts) }
}

/** Whether the log has commits of the data set; null: there is none. */
export async function isOwnLog(store: Store, owner: TableOwner): Promise<boolean | null> {
  const names = await store.list(DELTA_FOLDER)
  if (names.length === 0) return null
  const start = startOf(owner)
  for (const name of names.filter((name) => COMMIT.test(name))) {
    const bytes = await store.read(`${DELTA_FOLDER}/${name}`, 0, start.length)
    if (Buffer.from(bytes ?? []).toString() === start) return true
  }
  return false
}

function replay(names: readonly string[], texts: readonly string[]): Omit<DeltaState, 'mark' | 'files'> {
  const shards = new Map<string, TableShard>()
  let table = { id: '', begunMs: 0, schema: '' }
  for (const [version, text] of texts.entries()) {
    const path = commitPath(version)
    if (`${DELTA_FOLDER}/${names[version]}` !== path) throw damagedTable(path, null)
    try {
      for (const line of text.trimEnd().split('\n')) {
        const { add, metaData, remove } = JSON.parse(line) as Action
        if (metaData !== undefined)
          table = { id: metaData.id, begunMs: metaData.createdTime, schema: metaData.schemaString }
        if (remove !== undefined) shards.delete(decoded(remove.path))
        if (add === undefined) continue
        const { numRecords } = JSON.parse(add.stats) as { readonly numRecords: number }
        const sha256 = add.tags[SHA256_TAG] ?? ''
        const shard = { path: decoded(add.path), rows: numRecords, bytes: add.size, sha256 }
        shards.set(shard.path, shard)
      }
    } catch (error) {
      throw damagedTable(path, error)
    }
  }
  return { ...table, shards }
}

/** In an action a path is a URI. Of the characters in the paths of shards only `%` has to be escaped. */
export function encoded(path: string): string {
  return path.replaceAll('%', '%25')
}

function decoded(uri: string): string {
  return uri.replaceAll('%25', '%')
}

/** Removes the log, oldest commit first: without it readers refuse the rest. */
export async function removeLog(store: OwnedStore): Promise<void> {
  for (const name of await store.list(DELTA_FOLDER)) {
    if (OF_A_LOG.test(name)) await store.remove(`${DELTA_FOLDER}/${name}`)
  }
}
