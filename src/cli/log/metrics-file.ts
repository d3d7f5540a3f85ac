import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { codeOf, NO_RUN_COUNTS, type Pipeline, runCounts, serial } from '../../core/index.ts'
import { version } from '../../package/index.ts'
import type { Progress, RunSummary } from '../../run/index.ts'
import { notWritable, requireApart } from '../results/flag-file.ts'
import { isDevice, replaceFile } from '../results/save-file.ts'
import { lastSuccesses, metricsText, type PipelineFigures } from './metrics-text.ts'

// About the interval at which collectors read it.
const WRITE_MS = 30_000
// The collector is another user, and the file holds no row.
const MODE = 0o644

/** A file with figures for Prometheus, replaced in one step: when a run begins, every half minute, and at its end. */
export class MetricsFile {
  readonly #path: string
  readonly #onTrouble: (message: string) => void
  /** By pipeline, seconds since the epoch. */
  readonly #successes: Map<string, number>
  readonly #figures = new Map<string, PipelineFigures>()
  #startedMs = 0
  #updatedMs = 0
  readonly #inTurn = serial()

  private constructor(
    path: string,
    successes: ReadonlyMap<string, number>,
    onTrouble: (message: string) => void,
  ) {
    this.#path = path
    this.#successes = new Map(successes)
    this.#onTrouble = onTrouble
  }

  /**
   * @param pipelines it may not lie among what they export
   * @param onTrouble called when it cannot be written later on; the work matters more
   * @throws ExportError `config` when it cannot be written, or would harm a pipeline
   */
  static async open(
    path: string,
    pipelines: readonly Pick<Pipeline, 'load'>[],
    onTrouble: (message: string) => void,
  ): Promise<MetricsFile> {
    const own = { path, what: 'The metrics file' }
    await requireApart(own, pipelines)
    try {
      const text = isDevice(path) || !existsSync(path) ? '' : await readFile(path, 'utf8')
      const file = new MetricsFile(path, lastSuccesses(text), onTrouble)
      await replaceFile(path, text, MODE)
      return file
    } catch (error) {
      throw notWritable(own, error)
    }
  }

  /** A run begins. */
  begin(pipeline: string): void {
    this.#startedMs = performance.now()
    this.#update({ ...this.#nothingOf(pipeline), isRunning: true })
  }

  /** Writes the progress, if the last write was {@link WRITE_MS} ago. */
  progress(pipeline: string, progress: Progress): void {
    const nowMs = performance.now()
    if (nowMs - this.#updatedMs < WRITE_MS) return
    const { partitionsTotal, partitionsDone: done, partitionsFailed: failed } = progress
    this.#update({
      ...this.#nothingOf(pipeline),
      isRunning: true,
      durationSeconds: Math.round(nowMs - this.#startedMs) / 1000,
      ...runCounts(progress),
      partitions: { done, failed, pending: partitionsTotal - done - failed },
    })
  }

  end(summary: RunSummary): void {
    const { pipeline, status, lastCompleteMs, durationMs, service } = summary
    const { done, failed, pending } = summary.partitions
    if (lastCompleteMs !== null) this.#successes.set(pipeline, lastCompleteMs / 1000)
    this.#update({
      ...this.#nothingOf(pipeline),
      isSuccess: status === 'complete',
      durationSeconds: durationMs / 1000,
      ...runCounts(summary),
      service,
      partitions: { done, failed, pending },
    })
  }

  /** A run could not begin. */
  notBegun(pipeline: string): void {
    this.#update({ ...this.#nothingOf(pipeline), isSuccess: false })
  }

  /** Writes the exit code, and waits until the file is written. */
  async close(exitCode: number): Promise<void> {
    this.#write(exitCode)
    await this.#inTurn(async () => {})
  }

  #nothingOf(pipeline: string): PipelineFigures {
    return {
      pipeline,
      isRunning: false,
      isSuccess: null,
      at: Date.now() / 1000,
      durationSeconds: 0,
      ...NO_RUN_COUNTS,
      service: null,
      partitions: null,
    }
  }

  #update(figures: PipelineFigures): void {
    this.#updatedMs = performance.now()
    this.#figures.set(figures.pipeline, figures)
    this.#write(null)
  }

  #write(exitCode: number | null): void {
    const pipelines = [...this.#figures.values()]
    const text = metricsText({ version, pipelines, successes: this.#successes, exitCode })
    void this.#inTurn(() =>
      replaceFile(this.#path, text, MODE).catch((error: unknown) => {
        this.#onTrouble(`the metrics file cannot be written: ${codeOf(error)} (${this.#path})`)
      }),
    )
  }
}
