import { ExportError, type Pipeline, queryName, type Store } from '../core/index.ts'
import {
  CHECKPOINT_PATH,
  type Checkpoint,
  type CheckpointState,
  checkSettings,
  frozenSettings,
  type HeaderLine,
  MANIFEST_PATH,
} from '../state/index.ts'
import type { RunOptions } from './options.ts'
import { openSettledCheckpoint, readSettledCheckpoint } from './recover.ts'

/**
 * Opens the checkpoint that this pipeline may go on from, with the shards in line with it, or begins a new one.
 * @throws ExportError `config` or `damaged` when it may not; nothing is changed then
 */
export async function openOwnCheckpoint(
  pipeline: Pipeline,
  store: Store,
  options: Continuation & Pick<RunOptions, 'observer'>,
): Promise<Checkpoint> {
  const { header, accept } = await admission(pipeline, store, options)
  return openSettledCheckpoint(store, header, accept, (message) => options.observer.log('warn', message))
}

/**
 * Reads the checkpoint that this pipeline would go on from, and refuses what {@link openOwnCheckpoint} refuses;
 * null when there is none. Changes nothing.
 */
export async function readOwnCheckpoint(
  pipeline: Pipeline,
  store: Store,
  options: Continuation,
): Promise<CheckpointState | null> {
  const { accept } = await admission(pipeline, store, options)
  return readSettledCheckpoint(store, accept)
}

/** What decides whether a run may go on from a checkpoint. */
export type Continuation = Pick<RunOptions, 'clock' | 'maskKey' | 'subset'>

type Admission = {
  /** Of the checkpoint that this run would begin. */
  readonly header: HeaderLine
  /** @throws ExportError when the run may not go on from what was found; null: no checkpoint */
  readonly accept: (found: CheckpointState | null) => void
}

async function admission(pipeline: Pipeline, store: Store, options: Continuation): Promise<Admission> {
  const header: HeaderLine = {
    kind: 'header',
    version: 1,
    pipeline: pipeline.name,
    created_at: new Date(options.clock.now()).toISOString(),
    settings: frozenSettings(pipeline, options.maskKey) as HeaderLine['settings'],
  }
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  const accept = (found: CheckpointState | null): void => {
    if (found !== null) checkContinues(pipeline, found, header, options.subset)
    else if (hasManifest) throw lostCheckpoint()
  }
  return { header, accept }
}

function checkContinues(
  pipeline: Pipeline,
  found: CheckpointState,
  header: HeaderLine,
  subset: boolean,
): void {
  if (found.header.pipeline !== pipeline.name) {
    throw new ExportError(
      'config',
      `The folder belongs to the pipeline "${found.header.pipeline}", not to "${pipeline.name}"`,
      pipeline.load.path,
      'Give each pipeline a load.path of its own, restore the name, or start over with --fresh.',
    )
  }
  checkSettings(found.header.settings, header.settings, pipeline.file)
  if (!subset) checkQueries(pipeline, found)
}

/** Rows of a query that is no longer asked for would stay in a data set that says otherwise. */
function checkQueries(pipeline: Pipeline, found: CheckpointState): void {
  const asked = new Set(pipeline.extract.queries.map(queryName))
  const gone: string[] = []
  for (const [query, windows] of found.partitions.branches) {
    if (!asked.has(query) && [...windows.values()].some(({ pages }) => pages > 0)) gone.push(query)
  }
  if (gone.length === 0) return
  const more = gone.length > 5 ? ` and ${gone.length - 5} more` : ''
  throw new ExportError(
    'config',
    `The data set holds rows of queries that the pipeline no longer asks for: ${gone.slice(0, 5).join(', ')}${more}`,
    pipeline.file,
    'Put them back, write to another load.path, or start over with --fresh.',
  )
}

function lostCheckpoint(): ExportError {
  return new ExportError(
    'damaged',
    'There is a manifest but no checkpoint, so what was exported can not be gone on with',
    CHECKPOINT_PATH,
    'Restore the checkpoint from a backup, choose another load.path, or start over with --fresh.',
  )
}
