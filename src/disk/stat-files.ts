import { lstatSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ExpectedStat } from '../core/index.ts'
import { LinkGuard, pathIn } from './paths.ts'

/**
 * Stats files and folders one after the other. Synchronous calls take a half to a fifth of the processor time of Node's
 * asynchronous ones.
 * @returns those that hold something else, are links, or can't be read
 */
export function mismatchesOf(root: string, expected: readonly ExpectedStat[]): readonly ExpectedStat[] {
  const guard = new LinkGuard(root)
  return expected.filter((each) => {
    try {
      const full = pathIn(root, each.path)
      guard.checkSync('bytes' in each ? dirname(full) : full)
      if ('names' in each) return readdirSync(full).length !== each.names
      const found = lstatSync(full)
      return !found.isFile() || found.size !== each.bytes
    } catch {
      return true
    }
  })
}
