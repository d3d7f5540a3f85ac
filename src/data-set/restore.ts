import { type OwnedStore, WindowRun } from '../core/index.ts'
import { quarantinePath } from '../load/index.ts'
import {
  chainEntry,
  encodeIds,
  entriesOfManifest,
  hasEnded,
  type Journal,
  type JournalEntry,
  type Manifest,
  type ManifestShard,
  NEW_FEED,
  type PageEntry,
  splitPath,
  stateOfManifest,
} from '../state/index.ts'
import { highWord, lowWord } from '../transform/index.ts'
import { formatOf } from './described.ts'
import { readShard } from './read-shard.ts'
import { invalidationOf, redoEntry } from './redo/invalidate.ts'
import { nameOf, readSuppressionFile } from './suppression.ts'

/** Of each end of a shard, so that neither a page that the service repeats nor the front of a feed is taken for new. */
const MAX_IDS = 20_000

/**
 * Takes up a data set whose checkpoint is lost, in one commit: what is exported stays; a partition that is only in part
 * in shards is exported again, with all that share a shard with it; a feed goes on from its cursor.
 */
export async function restore(store: OwnedStore, journal: Journal, manifest: Manifest): Promise<void> {
  const state = stateOfManifest(manifest)
  const inShards = new Set(manifest.shards.flatMap(({ partitions }) => partitions))
  const goesOn = new Set<string>()
  const chains: JournalEntry[] = []
  const blobs: Uint8Array[] = []
  for (const [chain, feed] of manifest.feeds.entries()) {
    const ids = await idsOf(store, manifest, shardsOf(manifest, feed.query))
    if (ids === null) continue
    goesOn.add(feed.query)
    chains.push(...feedEntries(chain, feed, blobs.push(ids) - 1))
  }
  const again = new Set<string>()
  for (const [key, folded] of state.partitions) {
    const isLost = isOfFeed(key) ? !goesOn.has(splitPath(key)[0]) : !hasEnded(folded)
    if (isLost) again.add(key)
  }
  const entries: JournalEntry[] = []
  for (const entry of entriesOfManifest(manifest)) {
    if (entry.kind !== 'partition') entries.push(entry)
    else if (!again.has(entry.partition) || inShards.has(entry.partition))
      entries.push({
        ...entry,
        quarantine_end: await quarantineEnd(store, entry.partition, entry.quarantined),
      })
  }
  const lists = await readSuppressionFile(store)
  if (lists !== null) entries.push({ kind: 'suppression', list: nameOf(lists)! })
  entries.push(...chains)
  const seed = { partitions: [...again].filter((key) => inShards.has(key)), shards: [] }
  if (seed.partitions.length > 0) entries.push(redoEntry(invalidationOf(state, seed)))
  await journal.commit(entries, blobs)
}

function isOfFeed(key: string): boolean {
  return key.startsWith('feed.')
}

function shardsOf({ shards }: Manifest, query: string): readonly ManifestShard[] {
  return shards.filter(({ partitions }) => partitions.some((key) => splitPath(key)[0] === query))
}

/**
 * The chain of a feed that is read to its end, as if one page from its front and one to its end had brought its rows.
 * @param blob index of their ids
 */
function feedEntries(
  chain: number,
  { query, cursor, page_size: size, rising, falling }: Manifest['feeds'][number],
  blob: number,
): readonly JournalEntry[] {
  const feed = { ...NEW_FEED, pass: 'front', end: cursor, end_size: size, rising, falling } as const
  const page = (next: string | null): PageEntry => ({
    kind: 'page',
    chain,
    next,
    requests: 0,
    ...(size === null ? {} : { size }),
    ids: { blob, keep: 0 },
    feed: { over: true, rising: 0, falling: 0 },
  })
  return [chainEntry(chain, query, WindowRun.of('asc', [null]), feed), page(cursor), page(null)]
}

/** Ids of the first and last rows of shards, as the log holds those of a page; null: they are not exported. */
async function idsOf(
  store: OwnedStore,
  { columns, settings }: Manifest,
  shards: readonly ManifestShard[],
): Promise<Uint8Array | null> {
  if (!columns.some(({ name }) => name === 'id')) return null
  const { readIds } = await import('../load/inspect/index.ts')
  const format = formatOf(settings)
  const words: number[] = []
  for (const shard of shards) {
    await readShard(store, shard, (reader) => {
      let row = 0
      return readIds(reader, format, (id) => {
        if (row < MAX_IDS || row >= shard.rows - MAX_IDS) words.push(lowWord(id), highWord(id))
        row++
      })
    })
  }
  return encodeIds({ ids: { rows: Int32Array.from(words), rejected: new Int32Array() }, until: null })
}

/** Bytes of the rejected items of a partition that the manifest counts. */
async function quarantineEnd(store: OwnedStore, partition: string, items: number): Promise<number> {
  if (items === 0) return 0
  const bytes = Buffer.from((await store.read(quarantinePath(partition))) ?? [])
  let end = 0
  for (let item = 0; item < items; item++) {
    const next = bytes.indexOf('\n', end) + 1
    if (next === 0) break
    end = next
  }
  return end
}
