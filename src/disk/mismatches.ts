import { lstat, readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type ExpectedStat, sideBySide } from '../core/index.ts'
import { LinkGuard, pathIn } from './folders.ts'

/** @returns files and folders that hold something else, are links, or cannot be read, in their order */
export async function mismatches(
  root: string,
  expected: Iterable<ExpectedStat>,
): Promise<readonly ExpectedStat[]> {
  const guard = new LinkGuard(root)
  const found: (readonly [index: number, expected: ExpectedStat])[] = []
  let next = 0
  await sideBySide(expected, async (each) => {
    const index = next++
    if (!(await isAsExpected(root, guard, each).catch(() => false))) found.push([index, each])
  })
  return found.sort(([a], [b]) => a - b).map(([, each]) => each)
}

async function isAsExpected(root: string, guard: LinkGuard, expected: ExpectedStat): Promise<boolean> {
  const full = pathIn(root, expected.path)
  guard.check('bytes' in expected ? dirname(full) : full)
  if ('names' in expected) return (await readdir(full)).length === expected.names
  const found = await lstat(full)
  return found.isFile() && found.size === expected.bytes
}
