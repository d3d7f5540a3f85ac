import { type NamedPipeline, type OwnedStore, placeOf } from '../../core/index.ts'
import { folderOf, publishSealed, stands } from '../../load/index.ts'
import { type Journal, type ManifestShard, manifestShard } from '../../state/index.ts'
import type { DataSetOptions } from '../options.ts'
import { planAsOfLastRun } from '../plan/plan-state.ts'
import { FreeNumbers, rewriteShards, writingOf } from '../rewriting.ts'

/** A scheduled reader needs a file with all columns, those in the folders' names too. */
export async function fillEmptyDataSet(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  options: Pick<DataSetOptions, 'version' | 'build'> & {
    readonly onWritten?: (shard: ManifestShard) => void
  },
): Promise<void> {
  const { state } = journal
  const { extract, load } = pipeline
  if (state.shards.length > 0) return
  const [first] = planAsOfLastRun(pipeline, state)?.partitions() ?? []
  if (first === undefined) return
  const folder = folderOf(extract.resource, first, load.partitionBy)
  const part = state.partsOf.get(folder) ?? 0
  const schema = state.schemas.length - 1
  const identity = { shard: state.nextShard, folder, part, schema, partitions: [first.key] }
  const writing = writingOf(store, pipeline, state.schemas, options)
  const shard = await rewriteShards(store, pipeline, [], identity, writing, null)
  await journal.append([{ kind: 'seal', ...shard }])
  await publishSealed(store, shard)
  options.onWritten?.(manifestShard(shard))
}

/** Makes shards without rows again that are missing, or hold something else. Nothing is requested for them. */
export async function renewEmptyShards(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  options: Pick<DataSetOptions, 'version' | 'build'>,
): Promise<void> {
  const { state } = journal
  const writing = writingOf(store, pipeline, state.schemas, options)
  for (const former of [...state.shards].filter(({ rows }) => rows === 0)) {
    if (await stands(store, former)) continue
    const { folder } = placeOf(former.path)
    const numbers = new FreeNumbers(state).take(folder, former.schema ?? 0)
    const identity = { ...numbers, partitions: former.partitions }
    const by = await rewriteShards(store, pipeline, [], identity, writing, null)
    await journal.append([{ kind: 'swap', shards: [{ of: [former.shard], by }] }])
    await publishSealed(store, by)
  }
}
