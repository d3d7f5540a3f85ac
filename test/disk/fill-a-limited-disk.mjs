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

const own = await store.own('0123456789ab')
await own.replace('manifest', ['old'])
const replaced = await failure(own.replace('manifest', [Buffer.alloc(1 << 20)]))
const scratch = own.scratch()
await scratch.append(Buffer.from('first'))
const appended = await failure(scratch.append(Buffer.alloc(2 << 20, '#')))
await scratch.discard()
await own.release()
console.log(JSON.stringify({ replaced, appended }))
