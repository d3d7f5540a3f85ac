import type { Log, Pipeline } from '../../core/index.ts'
import { type RunOptions, type RunSummary, runPipeline } from '../../run/index.ts'
import { type RunSettings, runOptions } from '../../run-options.ts'
import type { Io } from '../command-line/command.ts'
import type { MetricsFile } from '../log/metrics-file.ts'
import { progressView } from '../results/progress-view.ts'
import { type HowItRan, printSummary } from '../results/summary.ts'
import type { StopSignals } from '../terminal/signals.ts'

export type ExportSettings = Pick<RunSettings, 'allowPlaintext' | 'failFast' | 'fresh' | 'redo'> &
  HowItRan & {
    readonly json: boolean
    readonly metrics?: MetricsFile | null
  }

/** @returns the exit code @throws ExportError when the run could not begin */
export async function exportPipeline(
  pipeline: Pipeline,
  settings: ExportSettings,
  { stop, abort }: StopSignals,
  io: Io,
): Promise<number> {
  const { env, run } = io
  const { allowPlaintext, failFast, fresh, redo, metrics } = settings
  const log: Log = (level, message, fields) => io.log(level, message, { pipeline: pipeline.name, ...fields })
  const own = { ...io, log }
  const view = progressView(pipeline, own)
  const onStop = (): void => own.log('info', 'stopping', { event: 'stop', signal: io.signals.received })
  stop.addEventListener('abort', onStop, { once: true })
  const { onOpening } = view
  const onProgress: RunOptions['onProgress'] = (progress) => {
    view.onProgress(progress)
    metrics?.progress(pipeline.name, progress)
  }
  let summary: RunSummary
  metrics?.begin(pipeline.name)
  try {
    const callbacks = { stop, abort, onLog: own.log, onOpening, onProgress }
    const flags = { allowPlaintext, failFast, fresh, redo, runId: run }
    summary = await runPipeline(pipeline, await runOptions(pipeline, { env, ...flags, ...callbacks }))
  } finally {
    own.screen.clear()
    stop.removeEventListener('abort', onStop)
  }
  metrics?.end(summary)
  const { error, failures } = summary
  // Printed already, by the log or at the signal.
  const isPrinted =
    error?.kind === 'interrupted' || failures.some(({ message }) => message === error?.message)
  if (error !== null && !isPrinted) io.reportError(error)
  return printSummary(summary, pipeline, settings, io)
}
