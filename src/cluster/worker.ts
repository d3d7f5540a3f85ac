import { hostname } from 'node:os'
import { withTimeout } from './queue.ts'
import { type SliceOptions, TimeSlice } from './time-slice.ts'

type WorkerOptions = Omit<SliceOptions, 'leaseMs'> & {
  /** Slots: organizations at a time. */
  readonly concurrency: number
  /** On abort the worker takes no more jobs, commits the pages in flight and returns its jobs. */
  readonly stop: AbortSignal
  readonly leaseMs?: number
}

const LEASE_MS = 9_000
const CLOCK_CHECK_MS = 60_000
const QUEUE_RETRY_MS = 1_000
const LOOP_MS = 250
const STOPPED = 'The worker was stopped'
/** With a larger offset, leases of live workers would expire, or those of dead workers would not. */
const MAX_CLOCK_OFFSET_MS = 2_000

/** A job is an organization; its pipelines run one after the other. @throws ExportError `target` */
export async function work(options: WorkerOptions): Promise<void> {
  const { queue, clock, concurrency, stop, log, leaseMs = LEASE_MS } = options
  const { DelayedError, UnrecoverableError } = await import('bullmq')
  const slices = new Map<string, TimeSlice>()
  let failure = null as { readonly error: unknown } | null
  const worker = queue.worker(
    async (job, token) => {
      const slice = new TimeSlice(job, token, { ...options, leaseMs })
      slices.set(job.id ?? '', slice)
      // The job may have been fetched while the worker was stopping.
      if (stop.aborted) slice.end(STOPPED)
      try {
        const { laterMs, failed } = await slice.run()
        if (laterMs !== null) {
          await job.moveToDelayed(laterMs, token)
          throw new DelayedError()
        }
        if (failed.length > 0) throw new UnrecoverableError(failed.join('\n'))
      } finally {
        slices.delete(job.id ?? '')
      }
    },
    {
      concurrency,
      name: `${hostname()}:${process.pid}`,
      lockDuration: leaseMs,
      stalledInterval: Math.ceil(leaseMs / 4.5),
    },
    (error) => {
      failure ??= { error }
    },
  )
  worker.on('error', ({ message }) => log('debug', `the queue: ${message}`))
  worker.on('locksRenewed', ({ jobIds }) => {
    for (const id of jobIds) slices.get(id)?.renewed()
  })
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) slices.get(id)?.end('The job is another worker’s by now')
  })
  const onStop = (): void => {
    for (const slice of slices.values()) slice.end(STOPPED)
  }
  stop.addEventListener('abort', onStop, { once: true })
  const isClockRight = async (): Promise<boolean> => {
    if (!queue.isTimedByWorkers) return true
    const before = clock.now()
    const server = await withTimeout(queue.now())
    // The server read its clock at some moment in between.
    const offsetMs = server - Math.min(Math.max(server, before), clock.now())
    if (Math.abs(offsetMs) <= MAX_CLOCK_OFFSET_MS) return true
    const offS = (Math.abs(offsetMs) / 1000).toFixed(1)
    const fields = { event: 'worker.clock', off_ms: Math.round(-offsetMs) }
    log('warn', `this clock is ${offS} s off the queue's; the worker takes no jobs until it is right`, fields)
    return false
  }
  log('info', 'worker started', { event: 'worker.start', worker: worker.id, slots: concurrency })
  let isRunning = false
  let nextCheckMs = Number.NEGATIVE_INFINITY
  try {
    while (!stop.aborted && failure === null) {
      if (clock.monotonicMs() >= nextCheckMs) {
        // Nothing is taken while the queue does not respond.
        const isRight = await isClockRight().catch(() => null)
        nextCheckMs = clock.monotonicMs() + (isRight === null ? QUEUE_RETRY_MS : CLOCK_CHECK_MS)
        if (isRight === true && !isRunning) {
          isRunning = true
          worker.run().catch((error: unknown) => {
            failure = { error }
          })
        } else if (isRight === true && worker.isPaused()) await worker.resume()
        else if (isRight === false && isRunning && !worker.isPaused()) {
          await worker.pause(true)
          for (const slice of slices.values()) slice.end('This clock is off')
        }
      }
      for (const slice of slices.values()) slice.checkEnd()
      await clock.sleep(LOOP_MS, stop).catch(() => {})
    }
  } finally {
    onStop()
    await worker.close()
    log('info', 'worker ended', { event: 'worker.end', worker: worker.id })
  }
  if (failure !== null) throw failure.error
}
