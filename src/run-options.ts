import { type Environment, learnSecrets, readMaskKey, readSecret } from './config/index.ts'
import { type Pipeline, type RowBatch, systemClock } from './core/index.ts'
import { encoderBuild, version } from './package/index.ts'
import { type RunObserver, type RunOptions, silentObserver } from './run/index.ts'
import type { ManifestShard } from './state/index.ts'

/** Any of the options of a run, and the environment with its secrets (default: `process.env`). */
export type RunSettings = Partial<RunOptions> & {
  readonly env?: Environment
  /** These four are called in addition to the `observer`, or without one. */
  readonly onLog?: RunObserver['log']
  readonly onProgress?: RunObserver['progress']
  /** Called when a shard is published. */
  readonly onShard?: (shard: ManifestShard) => void
  /** Called with the masked rows of each page after its commit; the run waits for the returned promise. */
  readonly onBatch?: (batch: RowBatch) => void | Promise<void>
}

/**
 * The options of a run, with defaults for all that are not given: secrets from the environment, the machine's clock, no
 * log, no abort signals, no fresh start, no plaintext.
 * @throws ExportError 'config' when the masking key is missing or too short
 */
export async function runOptions(pipeline: Pipeline, settings: RunSettings = {}): Promise<RunOptions> {
  const { env = process.env, onLog, onProgress, onShard, onBatch, ...given } = settings
  await learnSecrets(env, pipeline)
  return {
    readSecret: (name) => readSecret(name, env),
    maskKey: given.maskKey === undefined ? await readMaskKey(pipeline, env) : given.maskKey,
    stop: given.stop ?? new AbortController().signal,
    abort: given.abort ?? new AbortController().signal,
    clock: systemClock,
    allowPlaintext: false,
    failFast: false,
    fresh: false,
    redo: [],
    version,
    build: given.build ?? encoderBuild(),
    ...given,
    observer: observing(given.observer ?? silentObserver, { onLog, onProgress, onShard, onBatch }),
  }
}

type Callbacks = { [Name in 'onLog' | 'onProgress' | 'onShard' | 'onBatch']: RunSettings[Name] | undefined }

/** A callback that is not given is left out of the observer: rows are copied only for `onBatch` and `rows`. */
function observing(observer: RunObserver, { onLog, onProgress, onShard, onBatch }: Callbacks): RunObserver {
  if (onLog === undefined && onProgress === undefined && onShard === undefined && onBatch === undefined) {
    return observer
  }
  const hasRows = observer.rows !== undefined || onBatch !== undefined
  return {
    ...observer,
    log(level, message, fields) {
      observer.log(level, message, fields)
      onLog?.(level, message, fields)
    },
    progress(progress) {
      observer.progress(progress)
      onProgress?.(progress)
    },
    shard(shard) {
      observer.shard?.(shard)
      onShard?.(shard)
    },
    ...(hasRows && {
      async rows(batch: RowBatch) {
        await observer.rows?.(batch)
        await onBatch?.(batch)
      },
    }),
  }
}
