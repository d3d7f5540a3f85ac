import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { storeAt } from '../disk/temporary-store.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { cases } from '../support/thorough.ts'
import { storeConformance } from './conformance.ts'

storeConformance(
  'a store in a folder',
  () => {
    const root = join(scratchFolder(), 'data')
    return { open: () => storeAt(root), names: () => filesBelow(root) }
  },
  { sequences: cases(30, 6) },
)

async function filesBelow(root: string): Promise<string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  return found
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
}
