import type { SealEntry, ShardIdentity } from '../state/index.ts'
import { OpenShard, type OpenShardTools } from './open-shard.ts'
import { RowGroupMeasure } from './row-group-measure.ts'
import { cutSlice, importedAt, type PageRows, recordBatchOf } from './slice.ts'

type RewriteOptions = Omit<OpenShardTools, 'encoding'> & {
  readonly extension: string
  readonly rowGroupRows: number
}

/** Commit the entry, then publish it. @param identity its number, folder, part and the keys of its partitions */
export async function rewriteShard(
  pages: AsyncIterable<PageRows>,
  identity: ShardIdentity & { readonly partitions: Iterable<string> },
  { extension, rowGroupRows, ...tools }: RewriteOptions,
): Promise<SealEntry> {
  const shard = new OpenShard(
    { ...tools, encoding: (work) => work() },
    new RowGroupMeasure(rowGroupRows),
    identity,
  )
  const [first = ''] = identity.partitions
  for (const partition of identity.partitions) shard.count(partition, 0, null)
  try {
    for await (const page of pages) {
      const { rows } = page.recordBatch
      for (let at = 0; at < rows; ) {
        const all = {
          page,
          folder: identity.folder,
          schema: identity.schema,
          rows: { from: 0, to: rows },
          ranges: [],
        }
        const taken = shard.measure.take(page.sizes, all.rows, at, rows - at)
        if (taken > 0) {
          const slice = cutSlice(all, at, at + taken)
          shard.count(first, taken, importedAt(slice, 0, taken))
          shard.add(recordBatchOf(slice))
        }
        at += taken
        if (!shard.measure.isFull) continue
        shard.measure.reset()
        await shard.endRowGroup()
      }
    }
    if (shard.hasRest) await shard.endRowGroup()
    return await shard.seal(extension)
  } catch (error) {
    await shard.discard()
    throw error
  }
}
