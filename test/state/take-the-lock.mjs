// Takes the lock of the data set named on the command line whenever a line says `take`, prints how that went as
// one line of JSON, and gives it back when a line says `free` or its standard input ends.
import { createInterface } from 'node:readline'
import { systemClock } from '../../build/parts/core.js'
import { diskStore } from '../../build/parts/disk.js'
import { takeLock } from '../../build/parts/state.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)

let lock = null
say({ ready: process.pid })
for await (const command of createInterface({ input: process.stdin })) {
  if (command === 'free') {
    await lock.release()
    say({ held: false })
    continue
  }
  try {
    lock = await takeLock(store, {
      clock: systemClock,
      stop: new AbortController().signal,
      fresh: false,
      growing: async () => [],
      warn: () => {},
    })
    say({ held: true })
  } catch ({ kind, message }) {
    say({ held: false, kind, message })
  }
}
await lock?.release()
