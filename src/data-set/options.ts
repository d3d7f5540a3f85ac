import type { Clock, Log } from '../core/index.ts'

/** What every command needs that writes to a data set. Callbacks get no secret and no value of a record. */
export type WriteOptions = {
  readonly readSecret: (name: string) => Promise<string | null>
  /** Key of the `hmac` policies; null if no policy needs one. */
  readonly maskKey: Uint8Array | null
  /** On abort the run sends no more requests and commits the pages in flight. */
  readonly stop: AbortSignal
  readonly clock: Clock
  readonly onLog: Log
  readonly version: string
  /** The version of its encoder, for the files. */
  readonly build: string
}

export type ChangeOptions = WriteOptions & {
  /** Only says what would change; also during a run. Default: false. */
  readonly dryRun?: boolean
  /** Called before each shard that is read, and before each that is written, with its number. */
  readonly onShard?: (number: number, of: number) => void
}
