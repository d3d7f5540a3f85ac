import type { Look, Looks } from '../core/index.ts'
import type { Bucket } from './bucket.ts'

/** Lists what lies in the bucket, a thousand names a request, and holds it against what should. */
export function looks(bucket: Bucket): Looks {
  const sizes = new Map<string, number>()
  const counts = new Map<string, number>()
  return {
    add(look) {
      if ('bytes' in look) sizes.set(look.path, look.bytes)
      else counts.set(look.path, look.names)
    },
    async different() {
      const found = new Map<string, number>()
      const roots = new Set([...sizes.keys(), ...counts.keys()].map((path) => path.split('/', 1)[0]!))
      for (const root of roots) {
        for await (const { name, size } of bucket.objects(`${root}/`)) {
          if (sizes.get(name) === size) sizes.delete(name)
          const folder = name.slice(0, name.lastIndexOf('/'))
          if (counts.has(folder)) found.set(folder, (found.get(folder) ?? 0) + 1)
        }
      }
      const different: Look[] = []
      for (const [path, bytes] of sizes) different.push({ path, bytes })
      for (const [path, names] of counts)
        if (names !== (found.get(path) ?? 0)) different.push({ path, names })
      return different
    },
    async close() {},
  }
}
