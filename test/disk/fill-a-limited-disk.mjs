// Runs in a process whose files may only grow to a few kilobytes; prints what happened to two that would not.
import { diskStore } from '../../build/parts/disk.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
// Node raises SIGXFSZ to an error code by itself; without a listener the signal would end the process.
process.on('SIGXFSZ', () => {})

const failure = (work) =>
  work.then(
    () => null,
    ({ kind, where, what }) => ({ kind, where, what }),
  )

await store.writeWhole('manifest', ['old'])
const whole = await failure(store.writeWhole('manifest', [Buffer.alloc(1 << 20)]))
const log = await store.openLog('log', 0)
await log.append([Buffer.from('first')])
const appended = await failure(log.append([Buffer.alloc(1 << 20, '#')]))
const size = log.size
// What the failed write left behind does not count: the next one goes over it.
await log.append([Buffer.from('after')])
await log.close()
console.log(JSON.stringify({ whole, log: appended, size }))
