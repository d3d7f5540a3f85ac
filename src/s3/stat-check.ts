import type { ExpectedStat, StatCheck } from '../core/index.ts'
import type { Bucket } from './requests/index.ts'

/** Lists what lies in the bucket, a thousand names a request, and holds it against what should. */
export function looks(bucket: Bucket): StatCheck {
  const sizes = new Map<string, number>()
  const folders = new Map<string, { readonly names: number; found: number; last: string }>()
  return {
    add(look) {
      if ('bytes' in look) sizes.set(look.path, look.bytes)
      else folders.set(look.path, { names: look.names, found: 0, last: '' })
    },
    async mismatches() {
      const starts = new Set([...sizes.keys(), ...folders.keys()].map((path) => path.split('/', 1)[0]!))
      for (const start of starts) {
        for await (const { name, size } of bucket.objects(start)) {
          if (sizes.get(name) === size) sizes.delete(name)
          for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
            const folder = folders.get(name.slice(0, end))
            if (folder === undefined) continue
            // What lies in one folder of it comes in a row.
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
