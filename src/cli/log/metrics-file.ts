import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { codeOf, type Pipeline, type ServiceFigures, serial } from '../../core/index.ts'
import { version } from '../../package/index.ts'
import type { Progress, RunSummary } from '../../run/index.ts'
import type { RunCounts, Verdict } from '../../state/index.ts'
import { notWritable, requireApart } from '../results/flag-file.ts'
import { replaceFile } from '../results/save-file.ts'

// About the interval at which collectors read it.
const WRITE_MS = 30_000
// The collector is another user, and the file holds no row.
const MODE = 0o644

type Figures = Partial<RunCounts> & {
  readonly isRunning?: boolean
  readonly isSuccess?: boolean
  /** Seconds since the epoch. */
  readonly at?: number
  readonly lastSuccess?: number
  readonly durationSeconds?: number
  readonly partitions?: { readonly done: number; readonly failed: number; readonly pending: number }
  readonly service?: ServiceFigures
  readonly exitCode?: number
  /** On the data set. */
  readonly state?: Verdict['state']
}

/** A value; or several, by another label, with its values. Nothing where it is not known. */
type Value =
  | number
  | boolean
  | null
  | undefined
  | readonly [label: string, values: Readonly<Record<string, number>>]

type Metric = readonly [
  help: string,
  of: Exclude<keyof Figures, 'partitions' | 'service' | 'state'> | ((figures: Figures) => Value),
]

const METRICS: Readonly<Record<string, Metric>> = {
  info: [
    'Version of spillway; always 1.',
    ({ at }) => (at === undefined ? null : ['version', { [version]: 1 }]),
  ],
  running: ['Whether a run is in progress: 1 or 0.', 'isRunning'],
  last_run_timestamp_seconds: [
    'When these figures were taken: at the end of the last run, or during it.',
    'at',
  ],
  last_run_success: ['Whether the last run exported everything that was requested: 1 or 0.', 'isSuccess'],
  last_run_duration_seconds: ['How long the last run took.', 'durationSeconds'],
  last_run_rows: ['Rows that the last run exported.', 'rows'],
  last_run_requests: ['Requests that the last run sent, retries among them.', 'requests'],
  last_run_searches: ['Searches of the quota that the pages of the last run cost.', 'searchesSpent'],
  page_size_rows: ['Rows requested with the last page.', ({ service }) => service?.pageSize],
  last_run_retries: ['Requests that the last run sent again.', 'retries'],
  last_run_quarantined: ['Items that the last run quarantined.', 'quarantined'],
  last_run_failures: ['Partitions that failed in the last run.', ({ partitions }) => partitions?.failed],
  searches_left: ['Searches left, as the service last reported.', 'searchesRemaining'],
  partitions: [
    'Partitions of the pipeline by state.',
    ({ partitions }) => (partitions === undefined ? null : ['state', partitions]),
  ],
  last_success_timestamp_seconds: ['When a run last exported everything that was requested.', 'lastSuccess'],
  verdict: [
    'What the data set is, as `status` says: 1 for its state.',
    ({ state }) => (state === undefined ? null : ['state', { ...NO_STATE, [state]: 1 }]),
  ],
  exit_code: ['Exit code of the last run; absent during one.', 'exitCode'],
}

const NO_STATE: Readonly<Record<Verdict['state'], number>> = {
  complete: 0,
  incomplete: 0,
  stopped: 0,
  damaged: 0,
}

/** A file with figures for Prometheus, replaced in one step: when a run begins, every half minute, and at its end. */
export class MetricsFile {
  readonly #path: string
  readonly #onTrouble: (message: string) => void
  readonly #figures: Map<string, Figures>
  /** By pipeline: a worker runs several. */
  readonly #startedMs = new Map<string, number>()
  readonly #updatedMs = new Map<string, number>()
  readonly #inTurn = serial()

  private constructor(path: string, earlier: string, onTrouble: (message: string) => void) {
    this.#path = path
    this.#figures = new Map(lastSuccesses(earlier))
    this.#onTrouble = onTrouble
  }

  /** @throws ExportError `config` when it cannot be written, or would lie among what the pipelines export */
  static async open(
    path: string,
    pipelines: readonly Pick<Pipeline, 'load'>[],
    onTrouble: (message: string) => void,
  ): Promise<MetricsFile> {
    const own = { path, what: 'The metrics file' }
    await requireApart(own, pipelines)
    try {
      const text = !existsSync(path) ? '' : await readFile(path, 'utf8')
      const file = new MetricsFile(path, text, onTrouble)
      await replaceFile(path, text, MODE)
      return file
    } catch (error) {
      throw notWritable(own, error)
    }
  }

  begin(pipeline: string): void {
    this.#startedMs.set(pipeline, performance.now())
    this.#update(pipeline, { isRunning: true })
  }

  progress(pipeline: string, progress: Progress): void {
    const nowMs = performance.now()
    if (nowMs - (this.#updatedMs.get(pipeline) ?? 0) < WRITE_MS) return
    const { partitionsTotal, partitionsDone: done, partitionsFailed: failed } = progress
    const partitions = { done, failed, pending: partitionsTotal - done - failed }
    const durationSeconds = Math.round(nowMs - (this.#startedMs.get(pipeline) ?? nowMs)) / 1000
    this.#update(pipeline, { ...progress, isRunning: true, durationSeconds, partitions })
  }

  end({ pipeline, status, verdict, lastCompleteMs, durationMs, ...figures }: RunSummary): void {
    const { done, failed, pending } = figures.partitions
    this.#update(pipeline, {
      ...figures,
      isRunning: false,
      isSuccess: status === 'complete',
      state: verdict.state,
      durationSeconds: durationMs / 1000,
      partitions: { done, failed, pending },
      ...(lastCompleteMs === null ? {} : { lastSuccess: lastCompleteMs / 1000 }),
    })
  }

  /** Adds the exit code of a pipeline; of one whose run could not begin it is all that is known. */
  exit(pipeline: string, exitCode: number, verdict: Verdict | null = null): void {
    const { isRunning, at, ...before } = this.#figures.get(pipeline) ?? {}
    const has = isRunning === false ? before : { lastSuccess: before.lastSuccess, isSuccess: false }
    const now = verdict === null ? {} : { state: verdict.state }
    this.#update(pipeline, { ...(has as Figures), ...now, isRunning: false, exitCode })
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {})
  }

  #update(pipeline: string, figures: Figures): void {
    this.#updatedMs.set(pipeline, performance.now())
    const lastSuccess = figures.lastSuccess ?? this.#figures.get(pipeline)?.lastSuccess
    const known = lastSuccess === undefined ? {} : { lastSuccess }
    this.#figures.set(pipeline, { ...figures, ...known, at: Date.now() / 1000 })
    const text = metricsText(this.#figures)
    void this.#inTurn(() =>
      replaceFile(this.#path, text, MODE).catch((error: unknown) => {
        this.#onTrouble(`the metrics file cannot be written: ${codeOf(error)} (${this.#path})`)
      }),
    )
  }
}

/** Text in the exposition format of Prometheus, version 0.0.4. */
function metricsText(all: ReadonlyMap<string, Figures>): string {
  return Object.entries(METRICS)
    .map(([name, [help, of]]) => {
      const lines = [...all].flatMap(([pipeline, figures]) =>
        samples(`spillway_${name}`, pipeline, typeof of === 'string' ? figures[of] : of(figures)),
      )
      const head = `# HELP spillway_${name} ${help}\n# TYPE spillway_${name} gauge\n`
      return lines.length === 0 ? '' : `${head}${lines.join('')}`
    })
    .join('')
}

function samples(name: string, pipeline: string, value: Value): readonly string[] {
  const own = `pipeline="${pipeline.replace(/[\\"\n]/g, (found) => (found === '\n' ? '\\n' : `\\${found}`))}"`
  if (value === null || value === undefined) return []
  if (typeof value !== 'object') return [`${name}{${own}} ${Number(value)}\n`]
  const [label, values] = value
  return Object.entries(values).map(([key, each]) => `${name}{${own},${label}="${key}"} ${each}\n`)
}

/** The time of each pipeline's last success, as {@link metricsText} wrote it: all that outlives a command. */
function lastSuccesses(text: string): readonly (readonly [string, Figures])[] {
  const found = text.matchAll(
    /^spillway_last_success_timestamp_seconds\{pipeline="([a-z0-9-]+)"\} ([\d.]+)$/gm,
  )
  return Array.from(found, ([, pipeline, seconds]) => [pipeline!, { lastSuccess: Number(seconds) }])
}
