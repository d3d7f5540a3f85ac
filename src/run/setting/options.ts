import type { Clock } from '../../core/index.ts'
import type { RunObserver } from './observer.ts'

export type RunOptions = {
  /** Reads a secret by the name of its variable; null when it is not there. */
  readonly readSecret: (name: string) => Promise<string | null>
  /** Key of the `hmac` policies; null where no policy needs one. */
  readonly maskKey: Uint8Array | null
  /** Aborts to have the run stop asking and commit what is in hand. */
  readonly stop: AbortSignal
  /** Aborts to give up requests in flight as well. */
  readonly abort: AbortSignal
  readonly clock: Clock
  readonly observer: RunObserver
  /** Consent to `transform.secret: plaintext`, given anew at each run. */
  readonly allowPlaintext: boolean
  readonly failFast: boolean
  /** Throws away what was exported before. */
  readonly fresh: boolean
  /** Partitions, or globs of them, to be exported anew. */
  readonly redo: readonly string[]
  /** Spillway's own version, for the manifest and the files. */
  readonly version: string
  /** Which encoder it has, for the files. */
  readonly build: string
  /** Names the run in the log and the checkpoint, a UUID; left out: a new one. */
  readonly runId?: string
}
