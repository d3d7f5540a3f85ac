import { type Definition, work } from '../../cluster/index.ts'
import { readMaskKey } from '../../config/index.ts'
import { ExportError, isExportError, systemClock } from '../../core/index.ts'
import { version } from '../../package/index.ts'
import { runOptions } from '../../run-options.ts'
import { withDatabase } from '../cluster-database.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { chunkCollector, keepYoungGenerationSmall } from '../heap.ts'
import type { Io } from '../io.ts'

export const worker = command({
  options: (yargs) =>
    yargs
      .options({
        concurrency: {
          type: 'number',
          default: 16,
          requiresArg: true,
          describe: 'Chains at a time; most of them wait for their pace',
        },
      })
      .example('$0 worker', 'Until SIGTERM or Ctrl-C')
      .example('$0 worker --concurrency 64 --log-format json', 'For many organizations'),
  async run({ concurrency }, io) {
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 10_000) {
      throw new ExportError('config', '--concurrency is a whole number from 1 to 10000', '', 'Correct it.')
    }
    const { env } = io
    const signals = io.signals.listen((signal) =>
      io.log('info', 'told to stop: what is in hand is committed, the rest handed back', {
        event: 'stop',
        signal,
      }),
    )
    const { stop, abort } = signals
    keepYoungGenerationSmall()
    const collectChunks = chunkCollector()
    try {
      await withDatabase(io, { tables: true }, (database) =>
        work({
          database,
          clock: systemClock,
          lanes: concurrency,
          version,
          stop,
          abort,
          log: io.log,
          runOptions: ({ pipeline, allowPlaintext }: Definition, run) => {
            const given = { ...pipeline, extract: { ...pipeline.extract, whole: null } }
            const log: Io['log'] = (level, message, fields) =>
              io.log(level, message, { pipeline: pipeline.name, run, ...fields })
            const observer = { log, progress: collectChunks }
            return readMaskKey(given, env).then((maskKey) =>
              runOptions(given, { env, maskKey, stop, abort, observer, allowPlaintext }),
            )
          },
        }),
      )
    } catch (error) {
      // It was told to end, and what it did not come to is taken over.
      if (!(isExportError(error, 'interrupted') && stop.aborted)) throw error
    } finally {
      signals.release()
    }
    return DONE
  },
})
