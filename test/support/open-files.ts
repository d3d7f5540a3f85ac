import { readdirSync, readlinkSync } from 'node:fs'

/** Paths under a folder that this process holds open, on Linux. */
export function openBelow(folder: string): string[] {
  const paths = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return paths.filter((path) => path.startsWith(folder))
}
