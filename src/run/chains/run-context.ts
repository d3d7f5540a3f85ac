import type { NamedPipeline, Store } from '../../core/index.ts'
import type { PageSizes, Prefetch, Service } from '../../extract/index.ts'
import type { Plan } from '../../plan/index.ts'
import type { RunRecord } from '../../state/index.ts'
import type { PlanCounts } from '../data-set/completeness.ts'
import type { RunOptions } from '../options.ts'
import type { QuerySecrets } from '../queries.ts'
import type { Session } from '../session.ts'
import type { ChainQueue } from './chain-queue.ts'
import type { DeferredFailure, Halt } from './halt.ts'
import type { Measurements } from './measurements.ts'
import type { Quarantine } from './quarantine.ts'
import type { Tally } from './tally.ts'

/** What a run works with. */
export type RunContext = {
  readonly pipeline: NamedPipeline
  readonly store: Store
  readonly session: Session
  readonly plan: Plan
  readonly counts: PlanCounts
  readonly tally: Tally
  readonly secrets: QuerySecrets
  readonly options: RunOptions
  /** The run as the journal has it before its first request: what it did before a break counts. */
  readonly earlier: RunRecord
}

/** The same, and what the chains of the run share while they are followed. */
export type ChainsContext = RunContext & {
  readonly service: Service
  readonly prefetch: Prefetch
  readonly sizes: PageSizes
  readonly measurements: Measurements
  readonly halt: Halt
  readonly deferred: DeferredFailure
  readonly queue: ChainQueue
  readonly quarantine: Quarantine
  /** Tells the observer how far the run is. */
  readonly reportProgress: () => void
}
