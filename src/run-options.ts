import { type Pipeline, systemClock } from './core/index.ts'
import type { ChangeOptions } from './data-set/index.ts'
import { encoderBuild, version } from './package/index.ts'
import { type Environment, learnSecrets, readMaskKey, readSecret } from './pipeline/index.ts'
import type { RunOptions } from './run/index.ts'

/** All of them have defaults. */
export type Settings<T> = { readonly [Key in keyof T]?: T[Key] | undefined }

/** Any of the options of a run, and the environment with its secrets (default: `process.env`). */
export type RunSettings = Settings<RunOptions> & {
  readonly env?: Environment
}

/**
 * The options of a run, with defaults for all that are not given: secrets from the environment, the machine's clock, no
 * log, no abort signals, no fresh start, no plaintext. Every run gets its options here.
 * @throws ExportError 'config' when the masking key is missing or too short
 */
export async function runOptions(pipeline: Pipeline, settings: RunSettings = {}): Promise<RunOptions> {
  const { env = process.env, ...rest } = settings
  // What a program leaves undefined has its default as well.
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
  await learnSecrets(env, pipeline)
  return {
    readSecret: (name) => readSecret(name, env),
    clock: systemClock,
    onLog: () => {},
    onProgress: () => {},
    stop: neverStopped(),
    abort: neverStopped(),
    allowPlaintext: false,
    failFast: false,
    fresh: false,
    redo: [],
    version,
    build: rest.build ?? encoderBuild(),
    ...given,
    // A key that a program leaves undefined is none: policies that need one refuse that.
    maskKey: 'maskKey' in rest ? (rest.maskKey ?? null) : await readMaskKey(pipeline, env),
  }
}

/** What changes a data set without a run: its signal, where it is told of, and the environment with its secrets. */
export type ChangeSettings = Settings<Pick<ChangeOptions, 'stop' | 'onLog' | 'onShard'>> & {
  readonly env?: Environment
}

/** The options of what changes a data set without a run. */
export function changeOptions(settings: ChangeSettings): ChangeOptions {
  const { env = process.env, stop = neverStopped(), onLog = () => {}, onShard = () => {} } = settings
  const given = { stop, onLog, onShard, readSecret: (name: string) => readSecret(name, env), maskKey: null }
  return { ...given, clock: systemClock, version, build: encoderBuild() }
}

/** The signal of a caller that gives none. */
export function neverStopped(): AbortSignal {
  return new AbortController().signal
}
