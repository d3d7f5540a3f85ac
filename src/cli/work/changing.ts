import type { ChangeOptions } from '../../data-set/index.ts'
import { changeOptions } from '../../run-options.ts'
import type { Io } from '../command-line/command.ts'
import { untilStopped } from '../terminal/signals.ts'
import { count } from '../terminal/text.ts'

export function changing<T>(io: Io, work: (options: ChangeOptions) => Promise<T>): Promise<T> {
  return untilStopped(io, ({ stop }) => {
    // A folder may be named after an identity.
    const onShard = (number: number, of: number): void =>
      io.screen.isAt(`shard ${count(number)} of ${count(of)}`)
    return work(changeOptions({ env: io.env, stop, onLog: io.log, onShard })).finally(() => io.screen.clear())
  })
}
