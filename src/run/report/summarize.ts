import { type Clock, ExportError, type JournalEntry, type Pipeline, type Store } from '../../core/index.ts'
import {
  CHECKPOINT_PATH,
  checkMaskKey,
  MANIFEST_PATH,
  openCheckpoint,
  readCheckpoint,
  readManifest,
  SUCCESS_PATH,
  takeLock,
} from '../../state/index.ts'
import { growingFiles } from '../data-set/data-set.ts'
import { openDataSet } from '../data-set/open-data-set.ts'
import { namingLocations } from '../setting/locations.ts'
import { namePipeline } from '../setting/named-pipeline.ts'
import { countAnew } from './count-anew.ts'
import { knownFromManifest } from './known.ts'
import { type ReportOptions, writePage, writeReport } from './write-report.ts'

export type ReportedDataSet = { readonly rows: number; readonly shards: number }

export type SummarizeOptions = Pick<ReportOptions, 'version'> & {
  /** Where queries are named by digests: under another key they have other names. */
  readonly maskKey: Uint8Array | null
  readonly clock: Clock
  readonly stop: AbortSignal
  readonly warn: (message: string) => void
}

/**
 * Writes the report of a data set as it stands, after counting the rows whose
 * aggregates the journal lacks. Of a data set that was moved without its state it says what manifest and shards tell.
 * @throws ExportError `locked` while a run is at work, which writes the report at its end
 * @throws ExportError `config` when nothing was exported yet
 */
export async function summarizeDataSet(given: Pipeline, options: SummarizeOptions): Promise<ReportedDataSet> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const { clock, stop, warn } = options
    const data = openDataSet(pipeline)
    // Before the lock, which would make the folder.
    const found = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => data.size(path)))
    if (found.every((size) => size === null)) throw nothing(pipeline)
    const lock = await takeLock(data, { clock, stop, fresh: false, growing: growingFiles, warn })
    try {
      return await report(pipeline, lock.store, options)
    } finally {
      await lock.release()
    }
  })
}

async function report(
  pipeline: ReturnType<typeof namePipeline>,
  store: Store,
  { clock, version, maskKey }: SummarizeOptions,
): Promise<ReportedDataSet> {
  const context = { nowMs: clock.now(), version, hurry: false }
  const found = await readCheckpoint(store)
  if (found === null) {
    const manifest = await readManifest(store)
    if (manifest === null) throw nothing(pipeline)
    const sums = await countAnew(pipeline, store, manifest.shards)
    const retired = manifest.retired.length
    const isMarked = (await store.size(SUCCESS_PATH)) !== null
    await writePage(pipeline, store, knownFromManifest(manifest, sums, isMarked), { ...context, retired })
    return { rows: manifest.totals.rows, shards: manifest.totals.shards }
  }
  if (maskKey !== null) checkMaskKey(found.header.settings, maskKey, pipeline.file)
  const record = async (fact: JournalEntry): Promise<void> => {
    const checkpoint = await openCheckpoint(store, found.header, () => {})
    try {
      await checkpoint.append([fact])
    } finally {
      await checkpoint.close()
    }
  }
  await writeReport(pipeline, store, found, { ...context, mostRows: Number.POSITIVE_INFINITY }, record)
  return { rows: found.shards.rows, shards: found.shards.length }
}

function nothing({ load }: Pipeline): ExportError {
  return new ExportError('config', 'Nothing was exported yet', load.pathAsGiven, 'Run the pipeline first.')
}
