import { randomBytes } from 'node:crypto'
import { readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ExportError } from '../core/index.ts'
import { version } from '../package/index.ts'
import type { Progress, RunSummary } from '../run/index.ts'
import { lastSuccesses, metricsText, type PipelineFigures } from './metrics-text.ts'

// A run may take days; who watches it looks about as often.
const WRITE_MS = 30_000

/** A file with figures for Prometheus, replaced in one step: when a run begins, every half minute, and at its end. */
export class MetricsFile {
  readonly #path: string
  readonly #mode: number
  readonly #onTrouble: (message: string) => void
  /** By pipeline, seconds since the epoch. */
  readonly #successes: Map<string, number>
  readonly #figures = new Map<string, PipelineFigures>()
  #startedMs = 0
  #toldMs = 0
  #writing: Promise<void> = Promise.resolve()

  private constructor(
    path: string,
    mode: number,
    successes: ReadonlyMap<string, number>,
    onTrouble: (message: string) => void,
  ) {
    this.#path = path
    this.#mode = mode
    this.#successes = new Map(successes)
    this.#onTrouble = onTrouble
  }

  /**
   * @param onTrouble called when it can't be written later on; the work matters more
   * @throws ExportError `config` when it can't be written
   */
  static async open(path: string, mode: number, onTrouble: (message: string) => void): Promise<MetricsFile> {
    try {
      const place = await placeOf(path)
      const text = place.isThere ? await readFile(place.path, 'utf8') : ''
      const file = new MetricsFile(place.path, mode, lastSuccesses(text), onTrouble)
      await file.#replace(text)
      return file
    } catch (error) {
      const next = 'Choose a file in a folder that is there and can be written.'
      const what = `The metrics file can not be written: ${codeOf(error)}`
      throw new ExportError('config', what, path, next, { cause: error })
    }
  }

  /** A run begins. */
  begin(pipeline: string): void {
    this.#startedMs = performance.now()
    this.#tell({ ...this.#nothingOf(pipeline), isRunning: true })
  }

  /** To be called whenever there is something to tell. */
  progress(pipeline: string, progress: Progress): void {
    const nowMs = performance.now()
    if (nowMs - this.#toldMs < WRITE_MS) return
    const { partitionsTotal, partitionsDone: done, partitionsFailed: failed, requests, ...figures } = progress
    const { rows, retries, quarantined, searchesRemaining } = figures
    this.#tell({
      ...this.#nothingOf(pipeline),
      isRunning: true,
      durationSeconds: Math.round(nowMs - this.#startedMs) / 1000,
      rows,
      searches: requests,
      searchesLeft: searchesRemaining,
      retries,
      quarantined,
      failures: failed,
      partitions: { done, failed, pending: partitionsTotal - done - failed },
    })
  }

  end({ pipeline, status, partitions, lastCompleteMs, requests, ...figures }: RunSummary): void {
    const { rows, retries, quarantined, searchesRemaining, durationMs } = figures
    const { done, failed, pending } = partitions
    if (lastCompleteMs !== null) this.#successes.set(pipeline, lastCompleteMs / 1000)
    this.#tell({
      ...this.#nothingOf(pipeline),
      isSuccess: status === 'complete',
      durationSeconds: durationMs / 1000,
      rows,
      searches: requests,
      searchesLeft: searchesRemaining,
      retries,
      quarantined,
      failures: failed,
      partitions: { done, failed, pending },
    })
  }

  /** A run could not begin. */
  notBegun(pipeline: string): void {
    this.#tell({ ...this.#nothingOf(pipeline), isSuccess: false })
  }

  /** Nothing more is to come. */
  async close(exitCode: number): Promise<void> {
    this.#write(exitCode)
    await this.#writing
  }

  #nothingOf(pipeline: string): PipelineFigures {
    return {
      pipeline,
      isRunning: false,
      isSuccess: null,
      at: Date.now() / 1000,
      durationSeconds: 0,
      rows: 0,
      searches: 0,
      searchesLeft: null,
      retries: 0,
      quarantined: 0,
      failures: 0,
      partitions: null,
    }
  }

  #tell(figures: PipelineFigures): void {
    this.#toldMs = performance.now()
    this.#figures.set(figures.pipeline, figures)
    this.#write(null)
  }

  #write(exitCode: number | null): void {
    const pipelines = [...this.#figures.values()]
    const text = metricsText({ version, pipelines, successes: this.#successes, exitCode })
    this.#writing = this.#writing
      .then(() => this.#replace(text))
      .catch((error: unknown) => {
        this.#onTrouble(`the metrics file can not be written: ${codeOf(error)} (${this.#path})`)
      })
  }

  async #replace(text: string): Promise<void> {
    // Collectors look for *.prom, and take no other.
    const unfinished = join(dirname(this.#path), `.${basename(this.#path)}.${randomBytes(6).toString('hex')}`)
    try {
      await writeFile(unfinished, text, { flag: 'wx', mode: this.#mode })
      await rename(unfinished, this.#path)
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {})
      throw error
    }
  }
}

/** Where the file lies, links followed. @throws when something else than a file is there, which must not be replaced */
async function placeOf(path: string): Promise<{ readonly path: string; readonly isThere: boolean }> {
  try {
    const real = await realpath(path)
    if ((await stat(real)).isFile()) return { path: real, isThere: true }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { path, isThere: false }
    throw error
  }
  throw Object.assign(new Error('no file'), { code: 'not a regular file' })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
}
