import type { NamedPipeline } from '../../core/index.ts'
import type { PlanCounts, QuerySecrets } from '../../data-set/index.ts'
import type { PageSizes, Service } from '../../extract/index.ts'
import type { Plan } from '../../pipeline/index.ts'
import type { FoldedRun } from '../../state/index.ts'
import type { RunOptions } from '../options.ts'
import type { Session } from '../session.ts'
import type { ChainQueue } from './chain-queue.ts'
import type { Halt } from './halt.ts'
import type { Measurements } from './measurements.ts'
import type { Tally } from './tally.ts'

export type RunContext = {
  readonly pipeline: NamedPipeline
  readonly session: Session
  readonly plan: Plan
  readonly counts: PlanCounts
  readonly tally: Tally
  readonly secrets: QuerySecrets
  readonly options: RunOptions
  /** The run in the journal before its first request: it may have begun before an interruption. */
  readonly earlier: FoldedRun
}

export type ChainsContext = RunContext & {
  readonly service: Service
  readonly sizes: PageSizes
  readonly measurements: Measurements
  readonly halt: Halt
  readonly queue: ChainQueue
}
