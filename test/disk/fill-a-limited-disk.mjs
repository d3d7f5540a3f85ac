// Runs in a process whose files are limited to a few kilobytes. Prints the errors of two writes beyond the limit.
import { diskStore } from '../../build/parts/disk.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
// Without a listener SIGXFSZ ends the process; with one, Node reports an error code.
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
// The next write overwrites what the failed write left in the file.
await log.append([Buffer.from('after')])
await log.close()
console.log(JSON.stringify({ whole, log: appended, size }))
