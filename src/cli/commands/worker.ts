import { resolve } from 'node:path'
import { type RunWatcher, work } from '../../cluster/index.ts'
import { isExportError, systemClock } from '../../core/index.ts'
import { checkRequirements, readSubmitted } from '../../pipeline/index.ts'
import { runOptions } from '../../run-options.ts'
import { command, type Io, integerValue, stringValue } from '../command-line/command.ts'
import { MetricsFile } from '../log/metrics-file.ts'
import { summaryCode } from '../results/summary.ts'
import { exitCode } from '../terminal/exit-code.ts'
import { type StopSignals, untilStopped } from '../terminal/signals.ts'
import { withQueue } from './submit.ts'

export const worker = command({
  flags: {
    concurrency: integerValue('Organizations at a time; most of them wait for their rate limit', 16, 1, 1000),
    pipelines: stringValue('Folder below which the pipeline files lie [the working directory]'),
    'metrics-file': stringValue('Write metrics in the format of Prometheus'),
  },
  examples: [
    ['$0 worker', 'Until SIGTERM or Ctrl-C'],
    ['$0 worker --concurrency 64 --log-format json', 'For many organizations'],
  ],
  async run({ concurrency, pipelines, metricsFile }, io) {
    const { env, cwd } = io
    const folder = resolve(cwd, pipelines ?? '.')
    const metrics = await MetricsFile.open(metricsFile, [], io)
    const serve = async ({ stop, abort }: StopSignals): Promise<void> => {
      try {
        await withQueue({ ...io, wait: stop }, (queue) =>
          work({
            queue,
            clock: systemClock,
            concurrency,
            stop,
            log: io.log,
            readPipeline: (file) => readSubmitted(file, folder, { env, cwd }),
            ...(metrics === null ? {} : { onRun: watcherOf(metrics, io) }),
            runOptions: async (pipeline, given) => {
              await checkRequirements(pipeline, { env, allowPlaintext: given.allowPlaintext })
              return runOptions(pipeline, { env, abort, ...given })
            },
          }),
        )
      } catch (error) {
        // The worker was stopped. Other workers take over its jobs.
        if (!(isExportError(error, 'interrupted') && stop.aborted)) throw error
      } finally {
        await metrics?.close()
      }
    }
    await untilStopped(io, serve, (signal) =>
      io.log('info', 'stopping: pages in flight are committed, jobs return to the queue', {
        event: 'stop',
        signal,
      }),
    )
  },
})

function watcherOf(metrics: MetricsFile, io: Io): RunWatcher {
  return {
    begin: (pipeline) => metrics.begin(pipeline),
    progress: (pipeline, progress) => metrics.progress(pipeline, progress),
    end(summary) {
      metrics.end(summary)
      // Then the job goes on, here or elsewhere.
      if (summary.status !== 'interrupted') metrics.exit(summary.pipeline, summaryCode(summary, io))
    },
    failed: (pipeline, { kind }) => metrics.exit(pipeline, exitCode(kind, null)),
  }
}
