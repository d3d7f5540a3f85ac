import { randomUUID } from 'node:crypto'
import { availableParallelism, hostname } from 'node:os'
import { type Clock, ExportError, isExportError, plainError, WindowRun } from '../core/index.ts'
import {
  type Bench,
  exportPart,
  openBench,
  type RunObserver,
  type RunOptions,
  readSharedRunOf,
} from '../run/index.ts'
import type { Database, Row } from './database.ts'
import { endRuns } from './end-runs.ts'
import { PAUSES, Pauses, sharedPace } from './pace.ts'
import type { Definition } from './submit.ts'
import { WAKES, wake } from './wakes.ts'

export type WorkerOptions = {
  readonly database: Database
  readonly clock: Clock
  /** Chains at a time. */
  readonly lanes: number
  readonly version: string
  /** Aborts to have it take no more chains, commit what is in hand and hand the rest back. */
  readonly stop: AbortSignal
  /** Aborts to give up what is in hand as well. */
  readonly abort: AbortSignal
  readonly log: RunObserver['log']
  /** The options under which it works for a pipeline; fails with `config` when it lacks a secret. */
  readonly runOptions: (definition: Definition, run: string) => Promise<RunOptions>
}

// Six signs of life may be late; what is taken over from whoever is still alive costs the pages that are on their way.
const BEAT_MS = 1_500
const SILENCE_MS = 9_000
/** Whoever holds a chain and dies so often is the victim of that chain. */
const MOST_ATTEMPTS = 10
/** How long it waits for a reason to look, besides being told that there may be one. */
const IDLE_MS = 2_000
/** After trouble with the storage a chain is left alone for so long. */
const STORAGE_MS = 10_000
/** Runs that it can't work for are looked at again after so long. */
const UNFIT_MS = 60_000
/** What it takes to work for a run is kept open for so long after its last use. */
const BENCH_MS = 3_000

/**
 * Takes chains of submitted runs and follows them, so many at a time, until it is told to stop. Chains of workers that
 * show no sign of life any more become free for all.
 * @throws ExportError `target` when the database refuses
 */
export async function work(options: WorkerOptions): Promise<void> {
  await new Worker(options).work()
}

class Worker {
  readonly #options: WorkerOptions
  readonly #id = randomUUID()
  readonly #benches = new Map<string, Promise<OpenBench | null>>()
  readonly #unfit = new Map<string, number>()
  readonly #pauses = new Pauses()
  /** Since when it has been seen without a break, by the monotonic clock: only then it judges others. */
  #seenSinceMs: number | null = null
  #wake: () => void = () => {}

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  async work(): Promise<void> {
    const { database, clock, lanes, stop, log } = this.#options
    const end = new AbortController()
    await database.insist(BE_SEEN, this.#self(), stop)
    log('info', 'worker started', { event: 'worker.start', worker: this.#id, lanes })
    database.listen(WAKES, () => this.#wake(), end.signal)
    database.listen(PAUSES, (message) => this.#pauses.hear(message, clock), end.signal)
    const beating = this.#beat(end.signal)
    const busy = new Set<Promise<void>>()
    let failure = null as { readonly error: unknown } | null
    try {
      while (!stop.aborted) {
        const chain = busy.size < lanes ? await this.#next() : null
        if (chain !== null) {
          const following = this.#follow(chain)
            .catch((error: unknown) => {
              failure ??= { error }
            })
            .finally(() => {
              busy.delete(following)
              this.#wake()
            })
          busy.add(following)
        } else await this.#idle()
        if (failure !== null) break
      }
    } finally {
      await Promise.all(busy)
      end.abort()
      await beating
      await this.#closeBenches(0)
      await database.query('DELETE FROM workers WHERE worker = $1', [this.#id]).catch(() => {})
      log('info', 'worker ended', { event: 'worker.end', worker: this.#id })
    }
    if (failure !== null) throw failure.error
  }

  #self(): unknown[] {
    const { version, lanes } = this.#options
    return [this.#id, hostname(), process.pid, version, lanes]
  }

  /** Shows that it is there, and takes their chains from those who do not. */
  async #beat(signal: AbortSignal): Promise<void> {
    const { database, clock, log } = this.#options
    let isAway = false
    while (!signal.aborted) {
      try {
        const nowMs = clock.monotonicMs()
        const [seen] = await database.query(BE_SEEN, this.#self())
        if (isAway) log('info', 'the database answers again')
        isAway = false
        // After a time without a database everybody looks dead to whoever comes back first.
        if (Number(seen?.gap_ms ?? 0) > SILENCE_MS / 2) this.#seenSinceMs = null
        this.#seenSinceMs ??= nowMs
        if (nowMs - this.#seenSinceMs >= SILENCE_MS) await this.#takeBack()
      } catch (error) {
        if (!isExportError(error)) throw error
        if (!isAway)
          log('warn', `${error.message} Nothing is committed until then.`, { event: 'wait', for: 'database' })
        isAway = true
        this.#seenSinceMs = null
      }
      await clock.sleep(BEAT_MS, signal).catch(() => {})
    }
  }

  async #takeBack(): Promise<void> {
    const { database, log } = this.#options
    const [taken] = await database.query(`SELECT take_back($1 * interval '1 millisecond', $2) AS chains`, [
      SILENCE_MS,
      MOST_ATTEMPTS,
    ])
    const chains = Number(taken?.chains ?? 0)
    if (chains === 0) return
    log('warn', 'chains of workers that died are free again', { event: 'chains.freed', chains })
    await wake(database)
  }

  /** A chain for this worker; null: there is none now. */
  async #next(): Promise<Claim | null> {
    const { database } = this.#options
    try {
      for (;;) {
        const [claimed] = await database.query(
          'SELECT run, chain, fence, query, bounds FROM claim_chain($1, $2)',
          [this.#id, this.#unfitRuns()],
        )
        if (claimed?.chain != null) return claimFrom(claimed)
        const hasEnded = await endRuns(this.#desk(), async (run) => (await this.#benchOf(run))?.bench ?? null)
        if (!hasEnded) return null
      }
    } catch (error) {
      if (isExportError(error, 'target')) return null
      throw error
    }
  }

  async #idle(): Promise<void> {
    const { clock, stop } = this.#options
    await this.#closeBenches(BENCH_MS)
    const woken = new AbortController()
    this.#wake = () => woken.abort()
    // Not all at once.
    const ms = IDLE_MS * (0.75 + Math.random() / 2)
    await clock.sleep(ms, AbortSignal.any([stop, woken.signal])).catch(() => {})
  }

  /** Follows a chain for as long as it is this worker's. */
  async #follow(claim: Claim): Promise<void> {
    const { run, chain, fence } = claim
    const { database, abort } = this.#options
    const giveBack: GiveBack = (state, delayMs, note, retries) =>
      database.insist(
        `SELECT give_back($1, $2, $3, $4, $5 * interval '1 millisecond', $6, $7) AS held`,
        [run, chain, fence, state, delayMs, note === null ? null : JSON.stringify(note), retries],
        abort,
      )
    const own = await this.#benchOf(run)
    if (own === null) {
      await giveBack('waiting', 0, null, 0)
      return
    }
    own.users++
    try {
      await this.#followOn(own, claim, giveBack)
    } finally {
      own.users--
      own.usedMs = this.#options.clock.monotonicMs()
    }
  }

  async #followOn(own: OpenBench, claim: Claim, giveBack: GiveBack): Promise<void> {
    const { database, log, stop, abort } = this.#options
    const { run, chain, fence } = claim
    const { bench } = own
    const { queries, order } = bench.pipeline.extract
    const found = await database.insist(
      'SELECT line FROM lines WHERE run = $1 AND chain = $2 ORDER BY number',
      [run, chain],
      stop,
    )
    let number = found.length
    const lost = new AbortController()
    log('debug', 'chain taken', { event: 'chain.take', run, chain, fence })
    const ending = await exportPart(bench, {
      number: chain,
      fence,
      query: queries[claim.query]!,
      windows: new WindowRun(order, claim.bounds),
      lines: found.map(({ line }) => String(line)),
      async put(line) {
        const [answer] = await database.insist(
          'SELECT append_line($1, $2, $3, $4, $5) AS held',
          [run, chain, fence, number, line],
          abort,
        )
        if (answer?.held !== true) {
          lost.abort()
          throw lostChain(chain)
        }
        number++
      },
      async allotPart(folder, before) {
        const [part] = await database.insist(ALLOT, [run, folder, before], stop)
        return Number(part?.part)
      },
      stop: AbortSignal.any([stop, lost.signal]),
    })
    const { error, failures, failed, reasons, replacedNuls } = ending
    const { retries } = bench.service.counters
    const more = retries - own.retries
    own.retries = retries
    // Of most chains there is nothing to tell.
    const isPlain = failed === 0 && replacedNuls === 0 && Object.keys(reasons).length === 0
    const note = isPlain ? null : { failures: failures.slice(0, 20), failed, reasons, replacedNuls }
    if (error === null) await giveBack(failed > 0 ? 'failed' : 'done', 0, note, more)
    else await this.#giveUp(error, bench, giveBack, note, more)
  }

  /** What becomes of a chain that could not be followed to its end. */
  async #giveUp(
    error: ExportError,
    { run, pipeline }: Bench,
    giveBack: GiveBack,
    note: object | null,
    retries: number,
  ): Promise<void> {
    const { database, log, abort } = this.#options
    switch (error.kind) {
      case 'locked':
        log('warn', error.message)
        await this.#giveUpIfStartedOver(run, pipeline)
        return
      case 'interrupted':
        await giveBack('waiting', 0, note, retries)
        return
      case 'storage':
      case 'target':
        log('warn', error.message)
        await giveBack('waiting', STORAGE_MS, note, retries)
        return
      case 'quota':
      case 'credentials':
      case 'config':
      case 'damaged': {
        log('warn', error.message)
        await database.insist(
          'UPDATE runs SET halt = $2 WHERE run = $1 AND halt IS NULL',
          [run, JSON.stringify(plainError(error))],
          abort,
        )
        await giveBack('waiting', 0, note, retries)
        return
      }
      default:
        await giveBack('failed', 0, { ...note, error: error.message }, retries)
    }
  }

  #desk() {
    const { database, clock, version, log } = this.#options
    return { database, clock, version, log, worker: this.#id, unfit: this.#unfitRuns() }
  }

  #unfitRuns(): string[] {
    const now = this.#options.clock.monotonicMs()
    for (const [run, untilMs] of this.#unfit) if (untilMs <= now) this.#unfit.delete(run)
    return [...this.#unfit.keys()]
  }

  /** What it has to work for a run; null when it can't. */
  async #benchOf(run: string): Promise<OpenBench | null> {
    const { clock, log } = this.#options
    const opening =
      this.#benches.get(run) ??
      this.#openBench(run).then(
        (bench) => bench && { bench, users: 0, usedMs: clock.monotonicMs(), retries: 0 },
      )
    this.#benches.set(run, opening)
    try {
      const found = await opening
      if (found !== null) return found
    } catch (error) {
      if (!isExportError(error)) throw error
      if (!this.#unfit.has(run)) {
        log('warn', `chains of a run are left to other workers: ${error.message}`, {
          event: 'run.unfit',
          run,
        })
      }
    }
    this.#benches.delete(run)
    this.#unfit.set(run, clock.monotonicMs() + UNFIT_MS)
    return null
  }

  /** Closes those that nobody has used for so long. */
  async #closeBenches(idleMs: number): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs()
    for (const [run, opening] of this.#benches) {
      const open = await opening.catch(() => null)
      if (open === null || open.users > 0 || nowMs - open.usedMs < idleMs) continue
      this.#benches.delete(run)
      await open.bench.close()
    }
  }

  async #openBench(run: string): Promise<Bench | null> {
    const { database, clock, lanes, runOptions } = this.#options
    const [row] = await database.query('SELECT definition, organization FROM runs WHERE run = $1', [run])
    if (row === undefined) return null
    const definition = row.definition as Definition
    const { pipeline } = definition
    const { requestsPerSecond, basicRequestsPerSecond } = pipeline.service
    const rates = { search: requestsPerSecond, basic: basicRequestsPerSecond }
    const organization = String(row.organization)
    const threads = availableParallelism() > 1 && this.#benches.size <= availableParallelism()
    const settings = {
      run,
      lanes: Math.min(lanes, pipeline.extract.concurrency),
      openPace: (searchesRemaining: () => number | null) =>
        sharedPace(rates, { database, clock, organization, run, pauses: this.#pauses, searchesRemaining }),
      threads,
    }
    const bench = await openBench(pipeline, settings, await runOptions(definition, run))
    if (bench !== null) return bench
    await database.query(GIVE_UP, [run])
    return null
  }

  /** Somebody may have wanted the data set back. */
  async #giveUpIfStartedOver(run: string, pipeline: Bench['pipeline']): Promise<void> {
    if ((await readSharedRunOf(pipeline))?.run === run) return
    await this.#options.database.query(GIVE_UP, [run])
  }
}

/** A chain that this worker holds. */
type Claim = {
  readonly run: string
  readonly chain: number
  readonly fence: number
  /** Its place among those of the pipeline. */
  readonly query: number
  /** Of its windows; null: it has none. */
  readonly bounds: Float64Array | null
}

function claimFrom({ run, chain, fence, query, bounds }: Row): Claim {
  return {
    run: String(run),
    chain: Number(chain),
    fence: Number(fence),
    query: Number(query),
    bounds: bounds === null ? null : Float64Array.from(JSON.parse(String(bounds))),
  }
}

type OpenBench = {
  readonly bench: Bench
  /** Chains that it is used for. */
  users: number
  /** When it was used last, by the monotonic clock. */
  usedMs: number
  /** Retries that are told already. */
  retries: number
}

type GiveBack = (state: string, delayMs: number, note: unknown, retries: number) => Promise<unknown>

const BE_SEEN = `
WITH before AS (SELECT extract(epoch FROM clock_timestamp() - seen_at)::float8 * 1000 AS gap_ms FROM workers WHERE worker = $1),
  seen AS (
    INSERT INTO workers (worker, host, pid, version, lanes) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (worker) DO UPDATE SET seen_at = clock_timestamp()
  )
SELECT coalesce((SELECT gap_ms FROM before), 0) AS gap_ms`

const GIVE_UP = `
UPDATE runs SET status = 'ended', finished_at = clock_timestamp(),
  halt = '{"kind":"config","what":"The data set was started over","where":"","next":"Submit again."}'
WHERE run = $1 AND status <> 'ended'`

const ALLOT = `
INSERT INTO parts (run, folder, next) VALUES ($1, $2, $3 + 1)
ON CONFLICT (run, folder) DO UPDATE SET next = parts.next + 1
RETURNING next - 1 AS part`

function lostChain(chain: number): ExportError {
  return new ExportError(
    'locked',
    'Another worker has taken a chain over, because this one showed no sign of life',
    `chain ${chain}`,
    'What this one had in hand is asked for again, and nothing is lost or doubled.',
  )
}
