import { type BufferPool, bufferPool, type NamedPipeline, type Store } from '../../core/index.ts'
import { openService, type Service, type ServiceDeps } from '../../extract/index.ts'
import { type Workplace, workplace } from '../../load/index.ts'
import { type CheckpointState, readCheckpoint, readSharedRun } from '../../state/index.ts'
import { requirePolicies, requireSameRun } from '../admission/index.ts'
import { type Cpu, openCpu } from '../cpu/index.ts'
import { openDataSet } from '../data-set/index.ts'
import { decodePlan, encodePlan } from '../session/index.ts'
import {
  namingPlaces,
  type QuerySecrets,
  type RunOptions,
  readQuerySecrets,
  requireSendableToken,
} from '../setting/index.ts'

/** A pipeline that no flags have changed. */
export type SharedPipeline = Omit<NamedPipeline, 'extract'> & {
  readonly extract: NamedPipeline['extract'] & { readonly whole: null }
}

/** What a process has to follow chains of a run that others follow as well. */
export type Bench = {
  readonly run: string
  readonly pipeline: SharedPipeline
  readonly data: Store
  readonly secrets: QuerySecrets
  readonly options: RunOptions
  /** The data set as it was when the run began. */
  readonly before: CheckpointState
  readonly cpu: Cpu
  /** Where chains that are followed at one time take turns at encoding. */
  readonly workplace: Workplace
  readonly buffers: BufferPool
  readonly service: Service
  close(): Promise<void>
}

export type BenchOptions = {
  /** The run that the data set is given to. */
  readonly run: string
  /** Chains at a time. */
  readonly lanes: number
  /** The pace that all processes keep together. */
  readonly openPace: NonNullable<ServiceDeps['openPace']>
  /** Whether decoding and encoding have threads of their own. */
  readonly threads: boolean
}

/**
 * Gets ready to follow chains of a run.
 * @returns null when the data set is no longer given to that run: it was started over
 * @throws ExportError `config` when this process lacks what it takes: a secret, the mask key, the data set itself
 */
export async function openBench(
  given: NamedPipeline,
  { run, lanes, openPace, threads }: BenchOptions,
  options: RunOptions,
): Promise<Bench | null> {
  const pipeline: SharedPipeline = { ...given, extract: { ...given.extract, whole: null } }
  requirePolicies(pipeline, options)
  const secrets = await readQuerySecrets(pipeline, options)
  // A run of one machine needs it with its first request; here somebody else may have it.
  await requireSendableToken(pipeline, options, true)
  return namingPlaces(pipeline, async () => {
    const data = openDataSet(pipeline)
    const before = await readCheckpoint(data)
    requireSameRun(pipeline, before, secrets, options)
    if ((await readSharedRun(data))?.run !== run) return null
    const buffers = bufferPool(lanes + 1)
    const cpu = await openCpu(
      decodePlan(pipeline, options.maskKey),
      encodePlan(pipeline, options),
      buffers,
      threads,
    )
    const service = openService(
      pipeline.service,
      { maxRequests: null, minSearchesRemaining: null, monthly: null, connections: lanes },
      { ...options, buffers, openPace, log: options.observer.log },
    )
    return {
      run,
      pipeline,
      data,
      secrets,
      options,
      before: before!,
      cpu,
      workplace: workplace(),
      buffers,
      service,
      async close() {
        await service.close()
        await cpu.close()
      },
    }
  })
}
