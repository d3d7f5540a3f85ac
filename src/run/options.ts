import type { AllowedRequests, Clock, RowBatch } from '../core/index.ts'
import type { Hold, ManifestShard } from '../state/index.ts'
import type { SharedCpu } from './cpu/cpu.ts'

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

/** How a run speaks while it is at work. Nothing here ever holds a secret or a value of a record. */
export type RunObserver = {
  log(level: LogLevel, message: string, fields?: LogFields): void
  progress(progress: Progress): void
  /** Called before there is any progress to tell of, with what is done until then. */
  opening?(step: OpeningStep): void
  /** A file has its final name, and what is in it counts. */
  shard?(shard: ManifestShard): void
  /**
   * The rows of a page are committed; they may not be in a finished file yet. The chain waits for what this returns. Rows
   * of earlier runs don't come again, and a crash may come between commit and call.
   */
  rows?(batch: RowBatch): void | Promise<void>
}

/** `lock`: another run may hold the data set. Its lease expires at this time (epoch ms) unless a heartbeat comes. */
export type OpeningStep =
  | { readonly kind: 'lock'; readonly untilMs: number }
  | { readonly kind: 'checkpoint' }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

export type Progress = {
  readonly partitionsTotal: number
  readonly partitionsDone: number
  /** Of those, how many were done when the run began. */
  readonly partitionsDoneBefore: number
  /** How many this run has come through, by the times of its rows; a part of one is a fraction. */
  readonly partitionsAdvanced: number
  readonly partitionsFailed: number
  /** Rows, requests, retries and quarantined items of this run. */
  readonly rows: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** What of the quota this run has spent; null: the service does not tell. */
  readonly searchesSpent: number | null
  /** What the service said last; null while it has not. */
  readonly searchesRemaining: number | null
  /** Requests that may still be sent, by the budget of the run and by what is to be left of the quota; null: no limit. */
  readonly requestsAllowed: AllowedRequests | null
  /** While the service has everybody wait: until when, epoch milliseconds. */
  readonly pausedUntilMs: number | null
  readonly waits: RunWaits
}

/** What pages wait for at a moment, besides their pace. Times are epoch ms; null: for nothing of the kind. */
export type RunWaits = {
  /** The failed request that is sent again first. */
  readonly retry: RetryWait | null
  /** How many failed requests wait to be sent again. */
  readonly retries: number
  /** Since when a token is being read or renewed. */
  readonly tokenSinceMs: number | null
  /** Since when the oldest request in flight waits for its response. */
  readonly responseSinceMs: number | null
  /** Since when the page is being written that came first. */
  readonly diskSinceMs: number | null
}

export type RetryWait = {
  /** Which retry it is, from 1 on, and how many there may be. */
  readonly number: number
  readonly of: number
  readonly untilMs: number
  /** Why the last attempt failed. */
  readonly reason: string
}

export const silentObserver: RunObserver = { log: () => {}, progress: () => {} }
