import { type Clock, isExportError, type Store, serial } from '../core/index.ts'
import { BEAT, type Claim, claimText, HELD } from './claim.ts'

// Several fit into the time after which a claim that does not move is taken over.
const BEAT_MS = 3_000

export type SignsOfLife = {
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  /** Says that the data set is held. @throws ExportError `locked` when another run has taken over */
  hold(): Promise<void>
  stop(): Promise<void>
}

/** Adds a byte to the claim every few seconds, so that whoever can't see this process sees that it is there. */
export async function showSignsOfLife(
  store: Store,
  path: string,
  claim: Claim,
  clock: Clock,
): Promise<SignsOfLife> {
  const log = await store.openSmallLog(path, Buffer.byteLength(claimText(claim)))
  const end = new AbortController()
  const lost = new AbortController()
  const inTurn = serial()
  const write = (sign: Uint8Array): Promise<void> =>
    inTurn(async () => {
      await log.append([sign])
      await log.fsync()
    })
  const beating = async (): Promise<void> => {
    while (!end.signal.aborted) {
      try {
        await clock.sleep(BEAT_MS, end.signal)
      } catch {
        return
      }
      try {
        await write(BEAT)
      } catch (error) {
        if (isExportError(error, 'locked')) return lost.abort(error)
        // What else the disk may refuse the run finds out by itself.
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
