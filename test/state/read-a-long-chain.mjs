// Reads and saves the state of a data set in a separate process. Prints its contents and the peak memory.
import { existsSync, readFileSync } from 'node:fs'
import { diskStore } from '../../build/parts/disk.js'
import { readCheckpoint, saveCheckpoint } from '../../build/parts/state.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
await saveCheckpoint(await store.own('0123456789ab'), await readCheckpoint(store))
const { chains } = await readCheckpoint(store)
const [[, { pages, seen, next }]] = chains
const mostMb = Math.round(peakKb() / 1024)
console.log(JSON.stringify({ pages, seen: seen.size, next: next.length, mostMb }))

/** Peak memory of this process. On Linux `maxRSS` includes the memory of the process that started it. */
function peakKb() {
  const status = '/proc/self/status'
  if (!existsSync(status)) return process.resourceUsage().maxRSS
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, 'utf8'))[1])
}
