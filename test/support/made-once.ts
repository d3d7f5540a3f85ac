import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'

/**
 * The path of a file or folder that is made once per test run, for all files and processes.
 * @param about what it is made from: another one has another path
 * @param make makes it at the path that it gets
 */
export async function madeOnce(about: unknown, make: (path: string) => Promise<void>): Promise<string> {
  const key = createHash('sha256').update(JSON.stringify(about)).digest('hex')
  const path = join(inject('exports'), key)
  if (existsSync(path)) return path
  const own = `${path}.${randomUUID()}`
  await make(own)
  // Another process may have been as quick.
  await rename(own, path).catch((thrown: unknown) => {
    if (!existsSync(path)) throw thrown
  })
  return path
}
