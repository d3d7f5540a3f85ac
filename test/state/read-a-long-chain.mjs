// Reads the checkpoint of a data set in a process of its own and rewrites it; prints what it says and what it cost.
import { existsSync, readFileSync } from 'node:fs'
import { diskStore } from '../../build/parts/disk.js'
import { readCheckpoint, rewriteCheckpoint } from '../../build/parts/state.js'

const store = diskStore({ root: process.argv[2], fileMode: 0o600, dirMode: 0o700 })
await rewriteCheckpoint(store, await readCheckpoint(store))
const { chains } = await readCheckpoint(store)
const [[, { pages, seen, next }]] = chains
const mostMb = Math.round(mostKb() / 1024)
console.log(JSON.stringify({ pages, seen: seen.size, next: next.length, mostMb }))

/** The most memory since this program began: on Linux `maxRSS` counts what the process that started it had. */
function mostKb() {
  const status = '/proc/self/status'
  if (!existsSync(status)) return process.resourceUsage().maxRSS
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, 'utf8'))[1])
}
