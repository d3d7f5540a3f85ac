import { hostname } from 'node:os'
import type { Job } from 'bullmq'
import {
  type Clock,
  ExportError,
  isExportError,
  type Log,
  type Pipeline,
  plainError,
  serial,
} from '../core/index.ts'
import { type Progress, type RunOptions, type RunSummary, runPipeline } from '../run/index.ts'
import { type Queue, withTimeout } from './queue.ts'
import {
  jobSchema,
  type OrganizationJob,
  type Pending,
  type PipelineStatus,
  pendingOf,
  type SubmittedPipeline,
  wake,
} from './submitted-pipelines.ts'

export type SliceOptions = {
  readonly queue: Queue
  readonly clock: Clock
  readonly log: Log
  /** Completes the options of a run. @throws ExportError `config` when something that the run needs is missing */
  readonly runOptions: (
    pipeline: Pipeline,
    given: Partial<RunOptions> & Pick<RunOptions, 'allowPlaintext'>,
  ) => Promise<RunOptions>
  /** `left`: this machine does not have the file as it was submitted. */
  readonly readPipeline: (
    file: SubmittedPipeline['file'],
  ) => Promise<{ readonly pipeline: Pipeline } | { readonly left: LeftFile }>
  /** Told of each run. */
  readonly onRun?: RunWatcher
  readonly leaseMs: number
  /** The time slice of a job: after it the job returns to the queue if others wait. Default: a minute. */
  readonly sliceMs?: number
}

/** Where this machine looked for a file, and why it leaves it to others. */
type LeftFile = Omit<NonNullable<PipelineStatus['left']>, 'worker'>

/** Of the runs of this process, by the names of their pipelines. */
export type RunWatcher = {
  begin(pipeline: string): void
  progress(pipeline: string, progress: Progress): void
  end(summary: RunSummary): void
  /** One that could not begin. */
  failed(pipeline: string, error: ExportError): void
}

const SLICE_MS = 60_000
/** A job whose requests are being retried keeps its slot for at most this many time slices. */
const MAX_SLICES = 10
const POLL_MS = 1_000
const RETRY_MS = 10_000
const MAX_RETRY_MS = 300_000
/** Two readings of one pause differ by less. */
const PAUSE_MARGIN_MS = 100
/** Longer than the rate limit requires: the time of the former owner's last request is unknown. */
const INTERVAL_MARGIN = 1.1

type SliceEnd = {
  /** When the job runs again (epoch ms); null: it is finished, or returned to the queue. */
  readonly laterMs: number | null
  readonly failed: readonly string[]
}

/** One job in this worker: the pipelines of one organization, until its time slice ends. */
export class TimeSlice {
  readonly #job: Job
  readonly #token: string
  readonly #options: SliceOptions
  readonly #stop = new AbortController()
  readonly #startedMs: number
  #renewedMs: number
  #polledMs = 0
  #retries = 0
  /** End of the pause that the service demanded, by the monotonic clock. */
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  constructor(job: Job, token: string, options: SliceOptions) {
    this.#job = job
    this.#token = token
    this.#options = options
    this.#startedMs = options.clock.monotonicMs()
    this.#renewedMs = this.#startedMs
  }

  renewed(): void {
    this.#renewedMs = this.#options.clock.monotonicMs()
  }

  end(why: string): void {
    if (this.#stop.signal.aborted) return
    this.#options.log('info', `the time slice ends: ${why}`, { event: 'job.stop', job: this.#job.id ?? '' })
    this.#stop.abort(
      new ExportError({ kind: 'interrupted', what: why, where: '', next: 'Another worker continues it.' }),
    )
  }

  checkEnd(): void {
    const { queue, clock, leaseMs, sliceMs = SLICE_MS } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#renewedMs > leaseMs) this.end('The lease of the job has run out')
    const heldMs = nowMs - this.#startedMs
    if (this.#stop.signal.aborted || heldMs < sliceMs || nowMs - this.#polledMs < POLL_MS) return
    if (this.#retries > 0 && heldMs < sliceMs * MAX_SLICES) return
    this.#polledMs = nowMs
    queue.organizations.getWaitingCount().then(
      (waiting) => {
        if (waiting > 0) this.end('Other organizations wait')
      },
      () => {},
    )
  }

  async run(): Promise<SliceEnd> {
    const { queue, log } = this.#options
    const parsed = jobSchema.safeParse(this.#job.data)
    if (!parsed.success) return { laterMs: this.#leave(this.#job.name, this.#job.name), failed: [] }
    const { organization } = parsed.data
    log('info', 'job taken', { event: 'job.take', organization, job: this.#job.id ?? '' })
    const tried = new Set<string>()
    const failed: string[] = []
    const retriesAtMs: number[] = []
    const statuses: string[] = []
    try {
      for (;;) {
        const pending = await pendingOf(queue, organization, ({ name }) =>
          retriesAtMs.push(this.#leave(name, organization)),
        )
        const next = pending.find(({ submitted }) => !tried.has(submitted.submission))
        if (next === undefined) break
        tried.add(next.submitted.submission)
        const { status, retryAtMs, reason } = await this.#run(next, parsed.data)
        statuses.push(`${next.submitted.name} ${status}`)
        if (reason !== null) failed.push(reason)
        if (this.#stop.signal.aborted) break
        if (retryAtMs !== null) retriesAtMs.push(retryAtMs)
      }
    } catch (error) {
      if (!isExportError(error, 'target')) throw error
      // The queue does not respond, or another worker owns the job. The next owner finds what is left.
      this.end(error.message)
    }
    const isStopped = this.#stop.signal.aborted
    if (isStopped) await this.#requeue(organization)
    log('info', isStopped ? 'job handed back' : 'job ended', {
      event: 'job.end',
      organization,
      job: this.#job.id ?? '',
      pipelines: statuses.join(', '),
    })
    if (isStopped) return { laterMs: null, failed: [] }
    return { laterMs: retriesAtMs.length === 0 ? null : Math.min(...retriesAtMs), failed }
  }

  /** When something is tried again that this worker cannot do now: later and later. */
  #retryAtMs(): number {
    const before = Math.max(0, this.#job.attemptsStarted - 1)
    return this.#options.clock.now() + Math.min(RETRY_MS * 2 ** before, MAX_RETRY_MS)
  }

  /** What another version submitted is not understood. @returns when it is looked at again */
  #leave(name: string, organization: string): number {
    const what = `${name} was submitted by another version of spillway and is left to its workers`
    this.#options.log('warn', what, { organization })
    return this.#retryAtMs()
  }

  /** Adds a job that runs after this one, however this one ends. */
  async #requeue(organization: string): Promise<void> {
    const { queue, clock } = this.#options
    for (const deadlineMs = clock.monotonicMs() + this.#options.leaseMs; ; ) {
      try {
        return await wake(queue, organization)
      } catch (error) {
        if (!isExportError(error, 'target') || clock.monotonicMs() > deadlineMs) throw error
        await clock.sleep(POLL_MS, new AbortController().signal)
      }
    }
  }

  async #run({ job, submitted, status }: Pending, { hold, organization }: OrganizationJob): Promise<Ended> {
    const { clock, log } = this.#options
    const read = await this.#options.readPipeline(submitted.file).catch((error: unknown) => {
      if (isExportError(error)) return { pipeline: error }
      throw error
    })
    const { before = { shards: 0, bytes: 0, durationMs: 0 } } = status ?? {}
    const { submission } = submitted
    const write = this.#writerOf(job, { submission, state: 'active', hold, before, outcome: null })
    if ('left' in read) {
      const { path, why } = read.left
      log('warn', `${submitted.name}: ${path}: ${why}; it is left to other workers`, { organization })
      const left = { worker: `${hostname()}:${process.pid}`, path, why }
      const { outcome = null, hold: formerHold = hold } = status ?? {}
      await write({ state: 'waiting', hold: formerHold, outcome, left })
      return { status: 'left', retryAtMs: this.#retryAtMs(), reason: null }
    }
    const { pipeline } = read
    if (status !== null && status.pausedUntilMs !== null) {
      const leftMs = status.pausedUntilMs - (await withTimeout(this.#options.queue.now()))
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, clock.monotonicMs() + leftMs)
    }
    await write({})
    const holds = { id: hold, succeeds: status === null ? [] : [status.hold] }
    const { summary, error } = await this.#export(pipeline, submitted, holds, write, organization)
    const totals = {
      shards: before.shards + (summary?.shards ?? 0),
      bytes: before.bytes + (summary?.bytes ?? 0),
      durationMs: before.durationMs + (summary?.durationMs ?? 0),
    }
    const outcome = { summary: summary && { ...summary, ...totals }, error: error && plainError(error) }
    if (error?.kind === 'interrupted') {
      await write({ state: 'waiting', before: totals })
      return { status: 'waiting', retryAtMs: null, reason: null }
    }
    const retryAtMs = retryTime(error, this.#retryAtMs())
    if (error !== null && retryAtMs !== null) {
      log('warn', error.onTerminal, { organization, pipeline: submitted.name })
      await write({ state: 'waiting', before: totals, outcome: error.kind === 'quota' ? outcome : null })
      return { status: 'waiting', retryAtMs, reason: null }
    }
    await write({ state: 'done', outcome })
    const isFailed = isExportError(error, 'config', 'credentials', 'damaged')
    return {
      status: summary?.status === 'budget' ? 'stopped' : (summary?.status ?? 'failed'),
      retryAtMs: null,
      reason: isFailed ? `${submitted.name}: ${error.message}` : null,
    }
  }

  /** The status of a pipeline in the queue, which only the owner of the job writes. */
  #writerOf(job: Job, initial: StoredStatus): WriteStatus {
    const inOrder = serial()
    let now = initial
    return (change) => {
      now = { ...now, ...change }
      const status = now
      return inOrder(async () => {
        await this.#requireOwned()
        const leftMs = this.#pausedUntilMs - this.#options.clock.monotonicMs()
        // The clock of the next owner may differ from this one's.
        const pausedUntilMs: PipelineStatus['pausedUntilMs'] =
          leftMs > 0 ? (await withTimeout(this.#options.queue.now())) + leftMs : null
        await withTimeout(job.updateProgress({ ...status, pausedUntilMs }))
      })
    }
  }

  /** Exports a pipeline. Errors, also unexpected ones, are part of the result. */
  async #export(
    pipeline: Pipeline | ExportError,
    submitted: SubmittedPipeline,
    holds: Omit<NonNullable<RunOptions['hold']>, 'confirm'>,
    write: WriteStatus,
    organization: string,
  ): Promise<{ summary: Omit<RunSummary, 'error'> | null; error: ExportError | null }> {
    const { clock, log, onRun } = this.#options
    try {
      if (pipeline instanceof ExportError) throw pipeline
      const { requestsPerSecond } = pipeline.service
      const pausedMs = this.#pausedUntilMs - clock.monotonicMs()
      await clock.sleep(Math.max((1000 / requestsPerSecond) * INTERVAL_MARGIN, pausedMs), this.#stop.signal)
      const options = await this.#options.runOptions(pipeline, {
        allowPlaintext: submitted.allowPlaintext,
        stop: this.#stop.signal,
        onLog: (level, message, fields) =>
          log(level, message, { organization, pipeline: pipeline.name, ...fields }),
        onProgress: (progress) => {
          this.#watch(progress, write)
          onRun?.progress(pipeline.name, progress)
        },
        runId: submitted.submission,
        hold: { ...holds, confirm: () => this.#confirm() },
      })
      onRun?.begin(pipeline.name)
      const ran = await runPipeline(pipeline, options)
      onRun?.end(ran)
      const { error, ...summary } = ran
      return { summary, error }
    } catch (error) {
      if (isExportError(error)) {
        onRun?.failed(submitted.name, error)
        return { summary: null, error }
      }
      const what = `An unexpected error: ${error instanceof Error ? error.name : typeof error}`
      log('error', what, { organization })
      const unexpected = new ExportError({
        kind: 'data',
        what,
        where: submitted.name,
        next: 'Please report it.',
      })
      return { summary: null, error: unexpected }
    }
  }

  /** @throws ExportError `target` when another worker owns the job, or the queue does not respond */
  async #requireOwned(): Promise<void> {
    const extended = this.#job.extendLock(this.#token, this.#options.leaseMs)
    if ((await withTimeout(extended)) === 1) return this.renewed()
    throw new ExportError({
      kind: 'target',
      what: 'The job is another worker’s by now',
      where: this.#options.queue.label,
      next: 'Let that one continue.',
    })
  }

  /** @throws ExportError `interrupted` unless this worker still owns the job */
  async #confirm(): Promise<void> {
    try {
      await this.#requireOwned()
    } catch (error) {
      if (!isExportError(error, 'target')) throw error
      this.end(error.what)
      this.#stop.signal.throwIfAborted()
    }
  }

  /** Writes to the queue what the next owner needs: a pause of the service. */
  #watch({ retrying, pausedUntilMs }: Progress, write: WriteStatus): void {
    this.#retries = retrying
    if (pausedUntilMs === null) return
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + pausedUntilMs - clock.now()
    if (endMs <= this.#pausedUntilMs + PAUSE_MARGIN_MS) return
    this.#pausedUntilMs = endMs
    void write({}).catch(() => {})
  }
}

type StoredStatus = Omit<PipelineStatus, 'pausedUntilMs'>

/** Changes it, and writes it to the queue. @throws ExportError `target` when another worker owns the job */
type WriteStatus = (change: Partial<StoredStatus>) => Promise<void>

type Ended = {
  readonly status: string
  /** When it is retried (epoch ms); null: at no fixed time. */
  readonly retryAtMs: number | null
  /** Why it failed permanently; null: it did not. */
  readonly reason: string | null
}

/** When a pipeline that could not be exported to its end is retried (epoch ms); null: it is not. */
function retryTime(error: ExportError | null, laterMs: number): number | null {
  switch (error?.kind) {
    case 'storage':
    case 'locked':
      return laterMs
    case 'quota':
      return error.untilMs
    default:
      return null
  }
}
