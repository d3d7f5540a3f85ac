import { ExportError, type NamedPipeline, type Pipeline } from '../../core/index.ts'
import type { PlannedChain } from '../../plan/index.ts'
import {
  type Checkpoint,
  readSharedRun,
  requestsByMonth,
  SHARED_RUN_PATH,
  type SharedRun,
  SUCCESS_PATH,
  sharedRunText,
} from '../../state/index.ts'
import { openOwnCheckpoint, requirePolicies, warnOfOpenDoors } from '../admission/index.ts'
import { holdDataSet, isWholeExported, openDataSet, planFor, refuseLinks, survey } from '../data-set/index.ts'
import {
  namePipeline,
  namingPlaces,
  type RunOptions,
  readQuerySecrets,
  requireSendableToken,
} from '../setting/index.ts'

/** A run that is about to be given to workers. */
export type Begun = {
  readonly pipeline: NamedPipeline
  /** In the order of work; made as they are asked for. */
  readonly chains: Iterable<PlannedChain & { readonly kind: 'new' }>
  readonly partitions: { readonly total: number; readonly done: number }
  /** What earlier runs sent, by month. */
  readonly months: ReadonlyMap<string, number>
  /** As of when it is planned, epoch ms. */
  readonly plannedAtMs: number
}

/**
 * Plans a run, and gives the data set to those who will carry it out: no other run can begin there until their end.
 * @param target.shared names the run
 * @param target.over a run that is no more and that the data set is still given to; null: none
 * @param hand makes its chains known; when it fails the data set is given to nobody
 * @throws ExportError as a run that could not begin; `config` when an earlier run stopped half-way
 */
export async function beginSharedRun(
  given: Pipeline,
  { shared, over }: { readonly shared: SharedRun; readonly over: string | null },
  options: RunOptions,
  hand: (begun: Begun) => Promise<void>,
): Promise<void> {
  requirePolicies(given, options)
  const pipeline = namePipeline(given, options.maskKey)
  requireShareable(given)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  await namingPlaces(pipeline, async () => {
    const { clock, stop, observer } = options
    const warn = (message: string): void => observer.log('warn', message)
    const hold = { clock, stop, warn, sharedRun: over ?? shared.run }
    await holdDataSet(pipeline, hold, async (store) => {
      await warnOfOpenDoors(pipeline, observer)
      await refuseLinks(store)
      const checkpoint = await openOwnCheckpoint(pipeline, store, secrets, options)
      try {
        requireRest(checkpoint, pipeline)
        const { state } = checkpoint
        const plannedAtMs = clock.now()
        const plan = planFor(pipeline, plannedAtMs, state)
        const { total, done } = survey(pipeline, plan, state)
        if (!isWholeExported(pipeline, plan, plannedAtMs, state)) await store.remove(SUCCESS_PATH)
        const months = requestsByMonth(state.runs)
        await store.writeWhole(SHARED_RUN_PATH, [sharedRunText(shared)])
        const chains = { [Symbol.iterator]: () => newChains(plan.chains()) }
        try {
          await hand({ pipeline, chains, partitions: { total, done }, months, plannedAtMs })
        } catch (error) {
          await store.remove(SHARED_RUN_PATH)
          throw error
        }
      } finally {
        await checkpoint.close()
      }
    })
  })
}

/** The run of many workers that a data set is given to; null: none. */
export function readSharedRunOf(pipeline: Pipeline): Promise<SharedRun | null> {
  return namingPlaces(pipeline, () => readSharedRun(openDataSet(pipeline)))
}

function* newChains(chains: Iterable<PlannedChain>): Generator<PlannedChain & { kind: 'new' }> {
  for (const chain of chains) {
    if (chain.kind !== 'new') throw new Error('a data set at rest has no chain on its way')
    yield chain
  }
}

/** What a queue that others read can not hold, or workers on other machines can not reach. */
function requireShareable({ extract, transform, load, file }: Pipeline): void {
  const refuse = (what: string, next: string): never => {
    throw new ExportError('config', what, file, next)
  }
  if (extract.resource === 'reports') {
    refuse('Reports are not exported by workers', 'Use `run`: they are few, and cost no searches.')
  }
  if (
    transform.identity !== 'keep' &&
    extract.queries.some(({ type }) => type === 'email' || type === 'keyword')
  ) {
    refuse(
      'transform.identity hides what email and keyword queries ask for, and workers would have to be told',
      'Use `run`, or keep identities.',
    )
  }
  if (load.place.kind === 's3' && load.place.stateRoot !== null) {
    refuse(
      'state.path is a folder of one machine',
      'Leave it out: the state of a run of many workers is in their database.',
    )
  }
}

function requireRest({ state }: Checkpoint, { load }: Pipeline | NamedPipeline): void {
  if (state.chains.size === 0 && state.openShards.size === 0) return
  throw new ExportError(
    'config',
    'An earlier run stopped half-way, and only a run of one machine can go on from there',
    load.pathAsGiven,
    'Let `run` end it first, then submit.',
  )
}
