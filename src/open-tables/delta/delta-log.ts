import * as z from 'zod'
import { type OwnedStore, type Store, sideBySide } from '../../core/index.ts'
import {
  committedByOthers,
  DELTA_FOLDER,
  damagedTable,
  foreignTable,
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

const actionSchema = z.object({
  commitInfo: z.object({ engineInfo: z.string() }).optional(),
  protocol: z.object({ minReaderVersion: z.number(), minWriterVersion: z.number() }).optional(),
  add: z
    .object({ path: z.string(), size: z.number(), stats: z.string(), tags: z.record(z.string(), z.string()) })
    .optional(),
  metaData: z.object({ id: z.string(), createdTime: z.number(), schemaString: z.string() }).optional(),
  remove: z.object({ path: z.string() }).optional(),
})

export type DeltaState = {
  /** Of the last commit. */
  readonly version: number
  /** When the log began, epoch ms. */
  readonly begunMs: number
  /** Of the table, as Delta has it. */
  readonly id: string
  readonly schema: string
  readonly shards: ReadonlyMap<string, TableShard>
}

export function commitPath(version: number): string {
  return `${DELTA_FOLDER}/${String(version).padStart(20, '0')}.json`
}

/**
 * Reads all commits; null: there is no table, or one that is being removed.
 * @throws ExportError `config`: not the data set's own; `storage`: another program has committed; `damaged`: unreadable
 */
export async function readLog(store: Store, owner: TableOwner): Promise<DeltaState | null> {
  const names = await store.list(DELTA_FOLDER)
  if (names.length === 0) return null
  const commits = names.filter((name) => COMMIT.test(name))
  const others = names.filter((name) => !COMMIT.test(name))
  const texts: string[] = []
  await sideBySide(commits.entries(), async ([i, name]) => {
    texts[i] = Buffer.from((await store.read(`${DELTA_FOLDER}/${name}`)) ?? []).toString()
  })
  const isOwn = texts.map((text) => text.startsWith(startOf(owner)))
  if (!isOwn.includes(true)) throw foreignTable(DELTA_FOLDER)
  const foreign = commits.find((_, i) => !isOwn[i]) ?? others[0]
  if (foreign !== undefined) throw committedByOthers(`${DELTA_FOLDER}/${foreign}`)
  return isHalfRemoved(commits) ? null : replay(commits, texts)
}

/** Without its first commit a log is one that `removeLog` has begun to remove. */
function isHalfRemoved([first]: readonly string[]): boolean {
  return first !== undefined && `${DELTA_FOLDER}/${first}` !== commitPath(0)
}

/** Removes what is left of a log that was being removed when the command was stopped. */
export async function endRemoval(store: OwnedStore): Promise<void> {
  const names = await store.list(DELTA_FOLDER)
  if (isHalfRemoved(names.filter((name) => COMMIT.test(name)))) await removeLog(store)
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

function replay(names: readonly string[], texts: readonly string[]): DeltaState {
  const shards = new Map<string, TableShard>()
  let table = { id: '', begunMs: 0, schema: '' }
  for (const [version, text] of texts.entries()) {
    const path = commitPath(version)
    if (`${DELTA_FOLDER}/${names[version]}` !== path) throw damagedTable(path, null)
    try {
      for (const line of text.trimEnd().split('\n')) {
        const { add, metaData, remove } = actionSchema.parse(JSON.parse(line))
        if (metaData !== undefined)
          table = { id: metaData.id, begunMs: metaData.createdTime, schema: metaData.schemaString }
        if (remove !== undefined) shards.delete(decoded(remove.path))
        if (add === undefined) continue
        const { numRecords } = statsSchema.parse(JSON.parse(add.stats))
        const sha256 = add.tags[SHA256_TAG] ?? ''
        const shard = { path: decoded(add.path), rows: numRecords, bytes: add.size, sha256 }
        shards.set(shard.path, shard)
      }
    } catch (error) {
      throw damagedTable(path, error)
    }
  }
  return { version: texts.length - 1, ...table, shards }
}

const statsSchema = z.object({ numRecords: z.number() })

/** In an action a path is a URI. Of the characters in the paths of shards only `%` has to be escaped. */
export function encoded(path: string): string {
  return path.replaceAll('%', '%25')
}

function decoded(uri: string): string {
  return uri.replaceAll('%25', '%')
}

/** Writes the next commit. @returns false: another commit has the version */
export function writeCommit(store: OwnedStore, version: number, actions: Iterable<string>): Promise<boolean> {
  return store.create(commitPath(version), actions)
}

/** Removes the log, oldest commit first: without it readers refuse the rest. */
export async function removeLog(store: OwnedStore): Promise<void> {
  for (const name of await store.list(DELTA_FOLDER)) {
    if (OF_A_LOG.test(name)) await store.remove(`${DELTA_FOLDER}/${name}`)
  }
}
