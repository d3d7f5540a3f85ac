import { hostname } from 'node:os'
import type { Job } from 'bullmq'
import { type Clock, ExportError, isExportError, type Pipeline, plainError, serial } from '../core/index.ts'
import {
  type Progress,
  type RunObserver,
  type RunOptions,
  type RunSummary,
  runPipeline,
  type SharedCpu,
  shareCpu,
} from '../run/index.ts'
import { type Pending, pendingOf, wake } from './entries.ts'
import { type Entry, jobSchema, type OrganizationJob, type Standing } from './job.ts'
import { answered, type Queue } from './queue.ts'

export type WorkerOptions = {
  readonly queue: Queue
  readonly clock: Clock
  /** Organizations at a time. */
  readonly concurrency: number
  /** Aborts to have it take no more jobs, commit what is in hand and hand the rest back. */
  readonly stop: AbortSignal
  readonly log: RunObserver['log']
  /** The options under which it runs a pipeline; fails with `config` when it lacks a secret. */
  readonly runOptions: (pipeline: Pipeline, given: { allowPlaintext: boolean }) => Promise<RunOptions>
  /** Makes a pipeline of what was submitted, and of what the file says of what is hidden from the queue. */
  readonly readPipeline: (entry: Entry) => Promise<Pipeline>
  /** How long a lease lasts that is not renewed. Left out: 9 s. */
  readonly leaseMs?: number
  /** After so long a job goes back to the queue when others wait. Left out: a minute. */
  readonly turnMs?: number
}

const LEASE_MS = 9_000
const TURN_MS = 60_000
/** A turn that is over waits for requests that are being retried, up to so many turns. */
const LONGEST_TURNS = 10
const LOOK_MS = 1_000
const CLOCK_MS = 60_000
const STOPPED = 'The worker was told to stop'
/** A clock that is further off would take jobs from the living, or let the dead keep theirs. */
const MOST_OFF_MS = 2_000
const MOST_DEATHS = 10
const NOTE_MS = 2_000
const AGAIN_MS = 10_000
const LONGEST_AGAIN_MS = 300_000
/** A little more than the pace asks for: nobody knows when the last holder sent its last request. */
const PACE_MARGIN = 1.1

/**
 * Takes jobs, an organization each, and runs the pipelines of that organization one after the other, until it is told to stop.
 * @throws ExportError `target` when the queue refuses
 */
export async function work(options: WorkerOptions): Promise<void> {
  const { queue, clock, concurrency, stop, log, leaseMs = LEASE_MS } = options
  const { DelayedError, UnrecoverableError } = await import('bullmq')
  const cpu = shareCpu(concurrency)
  const turns = new Map<string, Turn>()
  const worker = queue.worker(
    async (job, token) => {
      const turn = new Turn(job, token, cpu, { ...options, leaseMs })
      turns.set(job.id ?? '', turn)
      // It may have been fetched at the last moment.
      if (stop.aborted) turn.end(STOPPED)
      try {
        const { laterMs, failed, statuses } = await turn.carryOut()
        if (laterMs !== null) {
          await job.moveToDelayed(laterMs, token)
          throw new DelayedError()
        }
        if (failed.length > 0) throw new UnrecoverableError(failed.join('\n'))
        return statuses
      } finally {
        turns.delete(job.id ?? '')
      }
    },
    {
      concurrency,
      name: `${hostname()}:${process.pid}`,
      lockDuration: leaseMs,
      stalledInterval: Math.ceil(leaseMs / 4.5),
    },
  )
  worker.on('error', ({ message }) => log('debug', `the queue: ${message}`))
  worker.on('locksRenewed', ({ jobIds }) => {
    for (const id of jobIds) turns.get(id)?.renewed()
  })
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) turns.get(id)?.end('The job is another worker’s by now')
  })
  const onStop = (): void => {
    for (const turn of turns.values()) turn.end(STOPPED)
  }
  stop.addEventListener('abort', onStop, { once: true })
  const isInTime = async (): Promise<boolean> => {
    const ahead = await answered(queue.clockAheadMs())
    if (ahead === null || Math.abs(ahead) <= MOST_OFF_MS) return true
    const offS = (Math.abs(ahead) / 1000).toFixed(1)
    const fields = { event: 'worker.clock', off_ms: Math.round(-ahead) }
    log('warn', `this clock is ${offS} s off the queue's; the worker takes nothing until it is right`, fields)
    return false
  }
  log('info', 'worker started', { event: 'worker.start', worker: worker.id, slots: concurrency })
  let isRunning = false
  let failure = null as { readonly error: unknown } | null
  let nextCheckMs = Number.NEGATIVE_INFINITY
  try {
    while (!stop.aborted && failure === null) {
      if (clock.monotonicMs() >= nextCheckMs) {
        // While the queue is away nobody takes anything.
        const isFit = await isInTime().catch(() => null)
        nextCheckMs = clock.monotonicMs() + (isFit === null ? LOOK_MS : CLOCK_MS)
        if (isFit === true && !isRunning) {
          isRunning = true
          worker.run().catch((error: unknown) => {
            failure = { error }
          })
        } else if (isFit === true && worker.isPaused()) await worker.resume()
        else if (isFit === false && isRunning && !worker.isPaused()) {
          await worker.pause(true)
          for (const turn of turns.values()) turn.end('This clock is off')
        }
      }
      for (const turn of turns.values()) turn.look()
      await clock.sleep(LOOK_MS / 4, stop).catch(() => {})
    }
  } finally {
    onStop()
    await worker.close()
    await cpu.close()
    log('info', 'worker ended', { event: 'worker.end', worker: worker.id })
  }
  if (failure !== null) throw failure.error
}

/** What a turn came to. */
type TurnEnd = {
  /** When the job is to be tried again (epoch ms); null: it is done with, or handed back. */
  readonly laterMs: number | null
  /** Why pipelines failed for good. */
  readonly failed: readonly string[]
  readonly statuses: Readonly<Record<string, string>>
}

type TurnOptions = WorkerOptions & { readonly leaseMs: number }

/** One organization in the hands of one worker. */
class Turn {
  readonly #job: Job
  /** By which the queue knows whose the job is. */
  readonly #token: string
  readonly #cpu: SharedCpu
  readonly #options: TurnOptions
  readonly #stop = new AbortController()
  readonly #startedMs: number
  #renewedMs: number
  #lookedMs = 0
  #retries = 0
  #pausedUntilMs: number | null = null

  constructor(job: Job, token: string, cpu: SharedCpu, options: TurnOptions) {
    this.#job = job
    this.#token = token
    this.#cpu = cpu
    this.#options = options
    this.#startedMs = options.clock.monotonicMs()
    this.#renewedMs = this.#startedMs
  }

  renewed(): void {
    this.#renewedMs = this.#options.clock.monotonicMs()
  }

  /** Has the run in hand commit what it has, and ask for no more. */
  end(why: string): void {
    if (this.#stop.signal.aborted) return
    this.#options.log('info', `the turn ends: ${why}`, { event: 'job.stop', job: this.#job.id ?? '' })
    this.#stop.abort(new ExportError('interrupted', why, '', 'Another worker goes on with it.'))
  }

  /** Ends it when its lease has run out, or when it has had its time and others wait. */
  look(): void {
    const { queue, clock, leaseMs, turnMs = TURN_MS } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#renewedMs > leaseMs) this.end('The lease of the job has run out')
    const heldMs = nowMs - this.#startedMs
    if (this.#stop.signal.aborted || heldMs < turnMs || nowMs - this.#lookedMs < LOOK_MS) return
    if (this.#retries > 0 && heldMs < turnMs * LONGEST_TURNS) return
    this.#lookedMs = nowMs
    queue.organizations.getWaitingCount().then(
      (waiting) => {
        if (waiting > 0) this.end('Others wait for their turn')
      },
      () => {},
    )
  }

  async carryOut(): Promise<TurnEnd> {
    const { queue, log } = this.#options
    const parsed = jobSchema.safeParse(this.#job.data)
    if (!parsed.success) throw new Error('the job is of another version of spillway')
    const { organization } = parsed.data
    log('info', 'job taken', { event: 'job.take', organization, job: this.#job.id ?? '' })
    const tried = new Set<string>()
    const failed: string[] = []
    let laterMs: number | null = null
    const statuses: Record<string, string> = {}
    try {
      for (;;) {
        const pending = await pendingOf(queue, organization, ({ name }) =>
          leaveAlone(log, name, organization),
        )
        const next = pending.find(({ entry }) => !tried.has(entry.submission))
        if (next === undefined) break
        tried.add(next.entry.submission)
        const { status, againMs, reason } = await this.#run(next, parsed.data)
        statuses[next.entry.settings.name] = status
        if (reason !== null) failed.push(reason)
        if (this.#stop.signal.aborted) {
          // A pause of the service is not to be cut short by whoever comes next; all else is for that one to find out.
          laterMs = status === 'waiting' ? this.#pausedUntilMs : null
          break
        }
        if (againMs !== null) laterMs = Math.min(laterMs ?? againMs, againMs)
      }
    } catch (error) {
      if (!isExportError(error, 'target')) throw error
      // The queue is away, or has given the job to another: whoever has it next finds what is left to be done.
      this.end(error.message)
    }
    const isStopped = this.#stop.signal.aborted
    if (isStopped && laterMs === null) await this.#wakeAgain(organization)
    log('info', isStopped ? 'job handed back' : 'job ended', {
      event: 'job.end',
      organization,
      job: this.#job.id ?? '',
    })
    return { laterMs, failed: isStopped ? [] : failed, statuses }
  }

  /** There is to be another job when this one is at its end, whatever becomes of this one. */
  async #wakeAgain(organization: string): Promise<void> {
    const { queue, clock } = this.#options
    for (const deadlineMs = clock.monotonicMs() + this.#options.leaseMs; ; ) {
      try {
        return await wake(queue, organization)
      } catch (error) {
        if (!isExportError(error, 'target') || clock.monotonicMs() > deadlineMs) throw error
        await clock.sleep(LOOK_MS, new AbortController().signal)
      }
    }
  }

  /** Runs one pipeline, as far as it comes. */
  async #run({ job, entry, standing }: Pending, { hold, organization }: OrganizationJob): Promise<Ran> {
    const { clock, log } = this.#options
    const pipeline = await this.#options.readPipeline(entry).catch((error: unknown) => {
      if (isExportError(error)) return error
      throw error
    })
    // It was right where it was submitted; what of it stands in a file may have become wrong since.
    if (isExportError(pipeline, 'config') && !entry.hidden) {
      leaveAlone(log, entry.settings.name, organization)
      return { status: 'unreadable', againMs: null, reason: null }
    }
    const deaths = standing?.state === 'active' ? (standing.moved ? 1 : standing.deaths + 1) : 0
    let now: Standing = {
      submission: entry.submission,
      state: 'active',
      hold,
      deaths,
      moved: false,
      pausedUntilMs: standing?.pausedUntilMs ?? null,
      before: standing?.before ?? { shards: 0, bytes: 0, replacedNuls: 0, durationMs: 0 },
      outcome: null,
    }
    const inTurn = serial()
    /** Fails when the job is another worker's, whose notes these must not overwrite. */
    const note = (change: Partial<Standing>): Promise<void> => {
      now = { ...now, ...change }
      const standing = now
      return inTurn(async () => {
        await this.#requireOurs()
        await answered(job.updateProgress(standing))
      })
    }
    if (deaths > MOST_DEATHS) {
      const what = `${deaths} workers died with this pipeline, one after the other, before any of them had committed a page`
      const error = new ExportError(
        'damaged',
        what,
        entry.settings.name,
        'Look into their logs, then submit it again.',
      )
      await note({ state: 'done', outcome: { summary: null, error: plainError(error) } })
      return { status: 'failed', againMs: null, reason: error.message }
    }
    await note({})
    let summary: RunSummary | null = null
    let error: ExportError | null = null
    try {
      if (pipeline instanceof ExportError) throw pipeline
      const { requestsPerSecond } = pipeline.service
      const spreadMs = deaths > 1 ? Math.random() * deaths * LOOK_MS : 0
      const pausedMs = (now.pausedUntilMs ?? 0) - clock.now()
      await clock.sleep(
        Math.max((1000 / requestsPerSecond) * PACE_MARGIN, spreadMs, pausedMs),
        this.#stop.signal,
      )
      summary = await this.#runPipeline(
        pipeline,
        entry,
        {
          id: hold,
          succeeds: standing === null ? [] : [standing.hold],
          confirm: () => this.#confirm(),
        },
        organization,
        (progress) =>
          this.#watch(progress, now, (change) => {
            note(change).catch(() => {})
          }),
      )
      error = summary.error
    } catch (thrown) {
      if (!isExportError(thrown))
        this.#options.log('error', `an error that was not foreseen: ${nameOf(thrown)}`, { organization })
      error = isExportError(thrown)
        ? thrown
        : new ExportError(
            'data',
            `An error that was not foreseen: ${nameOf(thrown)}`,
            entry.settings.name,
            'Please report it.',
          )
    }
    const before = summary === null ? now.before : addedUp(now.before, summary)
    const whole = summary === null ? null : { ...summary, ...before }
    const outcome = { summary: whole && withoutError(whole), error: error && plainError(error) }
    const end = endOf(error, this.#job.attemptsStarted, clock.now())
    switch (end.kind) {
      case 'back': {
        this.#pausedUntilMs = (now.pausedUntilMs ?? 0) > clock.now() ? now.pausedUntilMs : null
        await note({ state: 'waiting', before })
        return { status: 'waiting', againMs: null, reason: null }
      }
      case 'later':
        if (error !== null)
          this.#options.log('warn', error.message, { organization, pipeline: entry.settings.name })
        await note({ state: 'waiting', before, outcome: end.isTold ? outcome : null })
        return { status: 'waiting', againMs: end.untilMs, reason: null }
      case 'done':
        await note({ state: 'done', outcome })
        return {
          status: summary?.status === 'budget' ? 'stopped' : (summary?.status ?? 'failed'),
          againMs: null,
          reason: end.isFailed && error !== null ? `${entry.settings.name}: ${error.message}` : null,
        }
    }
  }

  async #runPipeline(
    pipeline: Pipeline,
    { submission, allowPlaintext }: Entry,
    hold: NonNullable<RunOptions['hold']>,
    organization: string,
    onProgress: (progress: Progress) => void,
  ): Promise<RunSummary> {
    const options = await this.#options.runOptions(pipeline, { allowPlaintext })
    const { observer } = options
    const log: RunObserver['log'] = (level, message, fields) =>
      observer.log(level, message, { organization, pipeline: pipeline.name, ...fields })
    return runPipeline(pipeline, {
      ...options,
      stop: this.#stop.signal,
      observer: {
        log,
        progress(progress) {
          observer.progress(progress)
          onProgress(progress)
        },
      },
      runId: submission,
      hold,
      cpu: this.#cpu,
    })
  }

  /** @throws ExportError `target` when the job has been given to another worker, or the queue is away */
  async #requireOurs(): Promise<void> {
    const extended = this.#job.extendLock(this.#token, this.#options.leaseMs)
    if ((await answered(extended)) === 1) return this.renewed()
    throw new ExportError(
      'target',
      'The job is another worker’s by now',
      this.#options.queue.label,
      'Let that one go on.',
    )
  }

  /** @throws ExportError `interrupted` when it can't be known that the job is still this worker's */
  async #confirm(): Promise<void> {
    try {
      await this.#requireOurs()
    } catch (error) {
      if (!isExportError(error, 'target')) throw error
      this.end(error.what)
      this.#stop.signal.throwIfAborted()
    }
  }

  #notedMs = 0

  /** Puts into the queue what a successor is to know: that something was committed, and a pause of the service. */
  #watch(
    { waits, rows, partitionsDone, partitionsDoneBefore, pausedUntilMs }: Progress,
    now: Standing,
    note: (change: Partial<Standing>) => void,
  ): void {
    this.#retries = waits.retries
    const moved = now.moved || rows > 0 || partitionsDone > partitionsDoneBefore
    const isNews = moved !== now.moved || (pausedUntilMs !== null && pausedUntilMs !== now.pausedUntilMs)
    const nowMs = this.#options.clock.monotonicMs()
    if (!isNews || nowMs - this.#notedMs < NOTE_MS) return
    this.#notedMs = nowMs
    note({ moved, pausedUntilMs: pausedUntilMs ?? now.pausedUntilMs })
  }
}

type Ran = {
  readonly status: string
  /** When it is to be tried again (epoch ms); null: not by a clock. */
  readonly againMs: number | null
  /** Why it failed for good; null: it did not. */
  readonly reason: string | null
}

type RunEnd =
  | { readonly kind: 'back' }
  | { readonly kind: 'later'; readonly untilMs: number; readonly isTold: boolean }
  | { readonly kind: 'done'; readonly isFailed: boolean }

/** What becomes of a pipeline whose run ended so. */
function endOf(error: ExportError | null, attempts: number, nowMs: number): RunEnd {
  switch (error?.kind) {
    case 'interrupted':
      return { kind: 'back' }
    case 'storage':
    case 'locked':
      return {
        kind: 'later',
        untilMs: nowMs + Math.min(AGAIN_MS * 2 ** Math.max(0, attempts - 1), LONGEST_AGAIN_MS),
        isTold: false,
      }
    case 'quota':
      if (error.untilMs === null) return { kind: 'done', isFailed: false }
      return { kind: 'later', untilMs: error.untilMs, isTold: true }
    case 'config':
    case 'credentials':
    case 'damaged':
      return { kind: 'done', isFailed: true }
    default:
      return { kind: 'done', isFailed: false }
  }
}

function addedUp(
  before: Standing['before'],
  { shards, bytes, replacedNuls, durationMs }: RunSummary,
): Standing['before'] {
  return {
    shards: before.shards + shards,
    bytes: before.bytes + bytes,
    replacedNuls: before.replacedNuls + replacedNuls,
    durationMs: before.durationMs + durationMs,
  }
}

function withoutError({ error: _, ...summary }: RunSummary): Omit<RunSummary, 'error'> {
  return summary
}

function leaveAlone(log: RunObserver['log'], name: string, organization: string): void {
  log('warn', `${name} was submitted by another version of spillway and is left alone`, { organization })
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : typeof thrown
}
