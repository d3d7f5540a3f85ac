import { type Environment, learnSecrets, readMaskKey, readSecret } from './config/index.ts'
import { type Pipeline, systemClock } from './core/index.ts'
import { encoderBuild, version } from './package/index.ts'
import { type RunOptions, silentObserver } from './run/index.ts'

/** Any of the options of a run, and where secrets come from (`process.env` when left out). */
export type RunSettings = Partial<RunOptions> & { readonly env?: Environment }

/**
 * The options of a run, with defaults for all that is not given: secrets from the environment, the machine's
 * clock, no log, no signal that stops it, nothing started over, nothing unmasked.
 * @throws ExportError 'config' when the masking key is missing or too short
 */
export async function runOptions(pipeline: Pipeline, settings: RunSettings = {}): Promise<RunOptions> {
  const { env = process.env, ...given } = settings
  await learnSecrets(env, pipeline)
  return {
    readSecret: (name) => readSecret(name, env),
    maskKey: given.maskKey === undefined ? await readMaskKey(pipeline, env) : given.maskKey,
    stop: given.stop ?? new AbortController().signal,
    abort: given.abort ?? new AbortController().signal,
    clock: systemClock,
    observer: silentObserver,
    onShard: () => {},
    allowPlaintext: false,
    failFast: false,
    fresh: false,
    redo: [],
    version,
    build: given.build ?? encoderBuild(),
    ...given,
  }
}
