// Runs in a process whose files are limited to a few kilobytes; prints the errors of two writes beyond that.
import { diskStore } from '../../build/parts/disk.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
// Node reports SIGXFSZ as an error code; without a listener the signal would end the process.
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
// The rest of the failed write does not count: the next one overwrites it.
await log.append([Buffer.from('after')])
await log.close()
console.log(JSON.stringify({ whole, log: appended, size }))
