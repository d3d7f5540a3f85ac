// Reads commands from standard input: `take` takes the lock of the data set given as argument, `free` releases it.
// Prints each result as a line of JSON. Releases the lock when standard input ends.
import { createInterface } from 'node:readline'
import { systemClock } from '../../build/parts/core.js'
import { diskStore } from '../../build/parts/disk.js'
import { takeLock } from '../../build/parts/state.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
const print = (result) => process.stdout.write(`${JSON.stringify(result)}\n`)

let lock = null
print({ ready: process.pid })
for await (const command of createInterface({ input: process.stdin })) {
  if (command === 'free') {
    await lock.release()
    print({ held: false })
    continue
  }
  try {
    lock = await takeLock(store, {
      clock: systemClock,
      stop: new AbortController().signal,
      fresh: false,
      warn: () => {},
    })
    print({ held: true })
  } catch ({ kind, message }) {
    print({ held: false, kind, message })
  }
}
await lock?.release()
