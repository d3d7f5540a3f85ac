import { changeOptions } from '../../run-options.ts'
import type { Io } from '../command-line/command.ts'
import { untilStopped } from '../terminal/signals.ts'
import { count } from '../terminal/text.ts'

/** Changes a data set until a signal stops it. Shows the shards that are read and written, without their names. */
export function changing<T>(
  io: Io,
  maskKey: Uint8Array | null,
  work: (options: ReturnType<typeof changeOptions>) => Promise<T>,
): Promise<T> {
  return untilStopped(io, ({ stop }) => {
    // A folder may be named after an identity.
    const onShard = (number: number, of: number): void =>
      io.screen.showNowAndThen(`shard ${count(number)} of ${count(of)}`)
    return work(changeOptions({ onLog: io.log, stop, maskKey, onShard }, io.env)).finally(() =>
      io.screen.clear(),
    )
  })
}
