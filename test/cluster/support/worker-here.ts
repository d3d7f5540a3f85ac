import { onTestFinished } from 'vitest'
import { openQueue, work } from '../../../src/cluster/index.ts'
import { readSubmitted } from '../../../src/config/index.ts'
import { isExportError, systemClock } from '../../../src/core/index.ts'
import { runOptions } from '../../../src/run-options.ts'
import type { Environment } from '../../support/workspace.ts'

export type WorkerHere = {
  readonly log: () => string
  /** Makes it commit what is in flight and end. */
  stop(): void
  readonly ended: Promise<void>
}

type Settings = {
  readonly folder: string
  readonly env: Environment
  readonly concurrency: number
  readonly leaseMs: number
  readonly sliceMs: number
}

/** The same as worker.mjs, in this process: for tests that do not stop a worker, kill it or read all its output. */
export function workHere({ folder, env, concurrency, leaseMs, sliceMs }: Settings): WorkerHere {
  const stop = new AbortController()
  const abort = new AbortController()
  let text = ''
  const log = (level: string, message: string, fields: unknown = {}): void => {
    text += `${level} ${message} ${JSON.stringify(fields)}\n`
  }
  const ended = (async () => {
    const queue = await openQueue(env.SPILLWAY_QUEUE_URL ?? '', {
      clock: systemClock,
      password: null,
      warn: (message) => log('warn', message),
      wait: stop.signal,
    })
    try {
      await work({
        queue,
        clock: systemClock,
        concurrency,
        leaseMs,
        sliceMs,
        stop: stop.signal,
        log,
        readPipeline: (file) => readSubmitted(file, folder, { env, cwd: folder }),
        runOptions: (pipeline, given) => runOptions(pipeline, { env, abort: abort.signal, ...given }),
      })
    } catch (error) {
      if (!(isExportError(error, 'interrupted') && stop.signal.aborted)) throw error
    } finally {
      await queue.close()
    }
  })()
  onTestFinished(() => {
    stop.abort()
    abort.abort()
    return ended
  })
  return { log: () => text, stop: () => stop.abort(), ended }
}
