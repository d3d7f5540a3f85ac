import { type Pipeline, systemClock } from './core/index.ts'
import type { ChangeOptions } from './data-set/index.ts'
import { encoderBuild, version } from './package/index.ts'
import { type Environment, learnSecrets, readMaskKey, readSecret } from './pipeline/index.ts'
import { RUN_FLAGS, type RunOptions } from './run/index.ts'

/** Any of the options of a run, and the environment with its secrets (default: `process.env`). */
export type RunSettings = { readonly [Key in keyof RunOptions]?: RunOptions[Key] | undefined } & {
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
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    ...RUN_FLAGS,
    redo: [],
    version,
    build: rest.build ?? encoderBuild(),
    ...given,
    // A key that a program leaves undefined is none: policies that need one refuse that.
    maskKey: 'maskKey' in rest ? (rest.maskKey ?? null) : await readMaskKey(pipeline, env),
  }
}

/** The options of what changes a data set without a run. */
export function changeOptions(
  given: Pick<ChangeOptions, 'onLog' | 'stop' | 'maskKey' | 'onShard' | 'dryRun'>,
  env: Environment = process.env,
): ChangeOptions & { readonly warn: (message: string) => void } {
  const warn = (message: string): void => given.onLog('warn', message)
  const readSecretOf = (name: string) => readSecret(name, env)
  return { ...given, warn, clock: systemClock, version, build: encoderBuild(), readSecret: readSecretOf }
}
