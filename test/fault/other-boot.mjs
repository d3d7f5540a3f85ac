/** Gives a process the id of another boot from its start, for `node --import`: its machine looks like another one. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { readFileSync } = fs

fs.readFileSync = (path, ...rest) =>
  path === '/proc/sys/kernel/random/boot_id' ? `${'0'.repeat(36)}\n` : readFileSync(path, ...rest)
syncBuiltinESMExports()
