import { type Clock, isExportError, type Store, serial } from '../../core/index.ts'
import { HEARTBEAT, HELD, type LockFile, lockFileText } from './lock-file.ts'

// Several heartbeats fit into a lease.
const HEARTBEAT_MS = 3_000

export type Heartbeat = {
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  /** Marks the data set as held. @throws ExportError `locked` when another run has taken over */
  hold(): Promise<void>
  stop(): Promise<void>
}

/** Appends a byte to the lock file every few seconds, which shows other machines that this process is alive. */
export async function startHeartbeat(
  store: Store,
  path: string,
  file: LockFile,
  clock: Clock,
): Promise<Heartbeat> {
  const log = await store.openSmallLog(path, Buffer.byteLength(lockFileText(file)))
  const end = new AbortController()
  const lost = new AbortController()
  const inTurn = serial()
  const write = (mark: Uint8Array): Promise<void> =>
    inTurn(async () => {
      await log.append([mark])
      await log.fsync()
    })
  const beating = async (): Promise<void> => {
    while (!end.signal.aborted) {
      try {
        await clock.sleep(HEARTBEAT_MS, end.signal)
      } catch {
        return
      }
      try {
        await write(HEARTBEAT)
      } catch (error) {
        if (isExportError(error, 'locked')) return lost.abort(error)
        // The run itself meets other errors of the disk.
      }
    }
  }
  const beats = beating()
  return {
    lost: lost.signal,
    hold: () => write(HELD),
    async stop() {
      end.abort()
      await beats
      await log.close()
    },
  }
}
