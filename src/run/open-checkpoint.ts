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
import type { QuerySecrets } from './query-secrets.ts'
import { openSettledCheckpoint } from './recover.ts'
import { newChecks, requireSameSecrets, secretChecks } from './secret-checks.ts'

/**
 * Opens the checkpoint that this pipeline may go on from, with the shards in line with it, or begins a new one.
 * @throws ExportError `config` or `damaged` when it may not; nothing is changed then
 */
export async function openOwnCheckpoint(
  pipeline: Pipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Pick<RunOptions, 'clock' | 'maskKey' | 'subset' | 'observer'>,
): Promise<Checkpoint> {
  const checks = secretChecks(pipeline, secrets, options.maskKey)
  const header: HeaderLine = {
    kind: 'header',
    version: 1,
    pipeline: pipeline.name,
    created_at: new Date(options.clock.now()).toISOString(),
    settings: frozenSettings(pipeline, options.maskKey) as HeaderLine['settings'],
  }
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  const accept = (found: CheckpointState | null): void => {
    if (found !== null) {
      checkContinues(pipeline, found, header, options.subset)
      requireSameSecrets(found, checks, pipeline.file)
    } else if (hasManifest) throw lostCheckpoint()
  }
  const warn = (message: string): void => options.observer.log('warn', message)
  const checkpoint = await openSettledCheckpoint(store, header, accept, warn)
  const lines = newChecks(checkpoint.state, checks)
  if (lines.length > 0) await checkpoint.append(lines)
  return checkpoint
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
      pipeline.load.pathAsGiven,
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
