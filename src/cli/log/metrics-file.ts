import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { codeOf, ExportError, type Pipeline, serial } from '../../core/index.ts'
import { version } from '../../package/index.ts'
import type { Progress, RunSummary } from '../../run/index.ts'
import type { RunCounts, Verdict } from '../../state/index.ts'
import type { Io } from '../command-line/command.ts'
import { replaceFile, requireApart } from '../results/save-file.ts'

// About the interval at which collectors read it.
const WRITE_MS = 30_000
// The collector is another user, and the file holds no row.
const MODE = 0o644

/** By name, in the order of the file: what each is. */
const METRICS = {
  info: 'Version of spillway; always 1.',
  running: 'Whether a run is in progress: 1 or 0.',
  last_run_timestamp_seconds: 'When these figures were taken: at the end of the last run, or during it.',
  last_run_success: 'Whether the last run exported everything that was requested: 1 or 0.',
  last_run_duration_seconds: 'How long the last run took.',
  last_run_rows: 'Rows that the last run exported.',
  last_run_requests: 'Requests that the last run sent, retries among them.',
  last_run_searches: 'Searches of the quota that the pages of the last run cost.',
  page_size_rows: 'Rows requested with the last page.',
  last_run_retries: 'Requests that the last run sent again.',
  last_run_quarantined: 'Items that the last run quarantined.',
  last_run_failures: 'Partitions that failed in the last run.',
  searches_left: 'Searches left, as the service last reported.',
  partitions: 'Partitions of the pipeline by state.',
  last_success_timestamp_seconds: 'When a run last exported everything that was requested.',
  verdict: 'What the data set is, as `status` says: 1 for its state.',
  exit_code: 'Exit code of the last run; absent during one.',
} as const

/** A number; or several, by the values of a label of their own. Nothing where it is not known. */
type Value = number | null | undefined | Readonly<Record<string, Readonly<Record<string, number>>>>
type Values = { readonly [Name in keyof typeof METRICS]?: Value }

/** A file with figures for Prometheus, replaced in one step: when a run begins, every half minute, and at its end. */
export class MetricsFile {
  readonly #path: string
  readonly #warn: (message: string) => void
  readonly #values: Map<string, Values>
  /** By pipeline: a worker runs several. */
  readonly #startedMs = new Map<string, number>()
  readonly #updatedMs = new Map<string, number>()
  readonly #inTurn = serial()

  private constructor(path: string, earlier: string, warn: (message: string) => void) {
    this.#path = path
    this.#values = new Map(lastSuccesses(earlier))
    this.#warn = warn
  }

  /** Of the flag; null: it is not given. @throws ExportError `config`: it cannot be written, or lies in a data set */
  static async open(
    file: string | undefined,
    pipelines: readonly Pick<Pipeline, 'load'>[],
    { cwd, log }: Io,
  ): Promise<MetricsFile | null> {
    if (file === undefined) return null
    const path = resolve(cwd, file)
    await requireApart(path, 'The metrics file', pipelines)
    try {
      const text = existsSync(path) ? await readFile(path, 'utf8') : ''
      await replaceFile(path, text, MODE)
      return new MetricsFile(path, text, (message) => log('warn', message))
    } catch (cause) {
      throw new ExportError({
        kind: 'config',
        what: `The metrics file cannot be written: ${codeOf(cause)}`,
        where: path,
        next: 'Choose a file in a folder that is there and can be written.',
        cause,
      })
    }
  }

  begin(pipeline: string): void {
    this.#startedMs.set(pipeline, performance.now())
    this.#update(pipeline, { running: 1 })
  }

  progress(pipeline: string, progress: Progress): void {
    const nowMs = performance.now()
    if (nowMs - (this.#updatedMs.get(pipeline) ?? 0) < WRITE_MS) return
    const { partitionsTotal, partitionsDone: done, partitionsFailed: failed } = progress
    this.#update(pipeline, {
      running: 1,
      last_run_duration_seconds: Math.round(nowMs - (this.#startedMs.get(pipeline) ?? nowMs)) / 1000,
      ...countsOf(progress, { done, failed, pending: partitionsTotal - done - failed }),
    })
  }

  end(summary: RunSummary): void {
    const { pipeline, status, verdict, lastCompleteMs, durationMs, service } = summary
    const { done, failed, pending } = summary.partitions
    this.#update(pipeline, {
      running: 0,
      last_run_success: Number(status === 'complete'),
      last_run_duration_seconds: durationMs / 1000,
      page_size_rows: service.pageSize,
      ...countsOf(summary, { done, failed, pending }),
      ...verdictOf(verdict),
      ...(lastCompleteMs === null ? {} : { last_success_timestamp_seconds: lastCompleteMs / 1000 }),
    })
  }

  /** Adds the exit code of a pipeline; of one whose run could not begin it is all that is known. */
  exit(pipeline: string, exitCode: number, verdict: Verdict | null = null): void {
    const before = this.#values.get(pipeline)
    const ended = before?.running === 0 ? before : { last_run_success: 0 }
    this.#update(pipeline, { ...ended, ...verdictOf(verdict), running: 0, exit_code: exitCode })
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {})
  }

  #update(pipeline: string, values: Values): void {
    this.#updatedMs.set(pipeline, performance.now())
    const { last_success_timestamp_seconds } = this.#values.get(pipeline) ?? {}
    this.#values.set(pipeline, {
      last_success_timestamp_seconds,
      ...values,
      info: { version: { [version]: 1 } },
      last_run_timestamp_seconds: Date.now() / 1000,
    })
    const text = metricsText(this.#values)
    void this.#inTurn(() =>
      replaceFile(this.#path, text, MODE).catch((error: unknown) => {
        this.#warn(`the metrics file cannot be written: ${codeOf(error)} (${this.#path})`)
      }),
    )
  }
}

function countsOf(counts: RunCounts, partitions: Readonly<Record<'done' | 'failed' | 'pending', number>>) {
  return {
    last_run_rows: counts.rows,
    last_run_requests: counts.requests,
    last_run_searches: counts.searchesSpent,
    last_run_retries: counts.retries,
    last_run_quarantined: counts.quarantined,
    last_run_failures: partitions.failed,
    searches_left: counts.searchesRemaining,
    partitions: { state: partitions },
  } satisfies Values
}

function verdictOf(verdict: Verdict | null): Values {
  if (verdict === null) return {}
  return { verdict: { state: { ...NO_STATE, [verdict.state]: 1 } } }
}

const NO_STATE: Readonly<Record<Verdict['state'], number>> = {
  complete: 0,
  incomplete: 0,
  stopped: 0,
  damaged: 0,
}

/** Text in the exposition format of Prometheus, version 0.0.4. */
function metricsText(all: ReadonlyMap<string, Values>): string {
  return Object.entries(METRICS)
    .map(([name, help]) => {
      const lines = [...all].flatMap(([pipeline, values]) =>
        samples(`spillway_${name}`, pipeline, values[name as keyof Values]),
      )
      const head = `# HELP spillway_${name} ${help}\n# TYPE spillway_${name} gauge\n`
      return lines.length === 0 ? '' : `${head}${lines.join('')}`
    })
    .join('')
}

function samples(name: string, pipeline: string, value: Value): readonly string[] {
  const own = `pipeline="${pipeline.replace(/[\\"\n]/g, (found) => (found === '\n' ? '\\n' : `\\${found}`))}"`
  if (value === null || value === undefined) return []
  if (typeof value === 'number') return [`${name}{${own}} ${value}\n`]
  return Object.entries(value).flatMap(([label, values]) =>
    Object.entries(values).map(([key, each]) => `${name}{${own},${label}="${key}"} ${each}\n`),
  )
}

/** The time of each pipeline's last success, as {@link metricsText} wrote it: all that outlives a command. */
function lastSuccesses(text: string): readonly (readonly [string, Values])[] {
  const found = text.matchAll(
    /^spillway_last_success_timestamp_seconds\{pipeline="([a-z0-9-]+)"\} ([\d.]+)$/gm,
  )
  return Array.from(found, ([, pipeline, seconds]) => [
    pipeline!,
    { last_success_timestamp_seconds: Number(seconds) },
  ])
}
