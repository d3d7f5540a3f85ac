import type { Clock } from '../../core/index.ts'
import type { Hold } from '../../state/index.ts'
import type { SharedCpu } from '../cpu/cpu.ts'
import type { RunObserver } from './observer.ts'

export type RunOptions = {
  /** Reads a secret by the name of its variable; null when it is not there. */
  readonly readSecret: (name: string) => Promise<string | null>
  /** Key of the `hmac` policies; null where no policy needs one. */
  readonly maskKey: Uint8Array | null
  /** Aborts to have the run stop sending requests and commit the pages in flight. */
  readonly stop: AbortSignal
  /** On abort, requests in flight are aborted as well. */
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
  /**
   * Names the run in the log and the checkpoint, a UUID; left out: a new one. One that bears the name of the data set's last
   * run goes on with that one: what it has sent and brought counts, also against its budget.
   */
  readonly runId?: string
  /** What the data set is held for, where a queue decides who may; left out: for this process alone. */
  readonly hold?: Hold
  /** Threads and buffers that runs of one process share; left out: this one has its own. */
  readonly cpu?: SharedCpu
}
