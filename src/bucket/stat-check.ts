import type { ExpectedStat, StatCheck } from '../core/index.ts'
import type { Driver } from './driver.ts'

/** Compares a listing of the bucket, thousands of names a request, with what is expected. */
export function statCheck(driver: Driver): StatCheck {
  const sizes = new Map<string, number>()
  const folders = new Map<string, { readonly names: number; found: number; last: string }>()
  return {
    add(expected) {
      if ('bytes' in expected) sizes.set(expected.path, expected.bytes)
      else folders.set(expected.path, { names: expected.names, found: 0, last: '' })
    },
    async mismatches() {
      const starts = new Set([...sizes.keys(), ...folders.keys()].map((path) => path.split('/', 1)[0]!))
      for (const start of starts) {
        for await (const { name, size } of driver.list(start, true)) {
          if (sizes.get(name) === size) sizes.delete(name)
          for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
            const folder = folders.get(name.slice(0, end))
            if (folder === undefined) continue
            // Names of the same subfolder come one after the other.
            const [child = ''] = name.slice(end + 1).split('/', 1)
            if (child !== folder.last) folder.found++
            folder.last = child
          }
        }
      }
      const different: ExpectedStat[] = []
      for (const [path, bytes] of sizes) different.push({ path, bytes })
      for (const [path, { names, found }] of folders) if (names !== found) different.push({ path, names })
      return different
    },
    async close() {},
  }
}
