import { cpSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Copies a data set as a process leaves it that is killed now: without its lock. Other threads may still write, so it
 * copies until nothing changes meanwhile.
 */
export function copyAsKilled(output: string, copy: string): void {
  for (let attempt = 0; ; attempt++) {
    if (attempt === 100) throw new Error('the data set can not be copied')
    const before = listing(output)
    try {
      rmSync(copy, { recursive: true, force: true })
      cpSync(output, copy, { recursive: true })
    } catch {
      continue
    }
    if (before !== null && listing(output) === before) break
  }
  const state = join(copy, '_state')
  if (!existsSync(state)) return
  for (const name of readdirSync(state)) if (name.startsWith('lock')) rmSync(join(state, name))
}

/** @returns null if a file went away meanwhile */
function listing(folder: string): string | null {
  try {
    const paths = readdirSync(folder, { recursive: true }) as string[]
    return paths
      .map((path) => {
        const { size, mtimeNs } = statSync(join(folder, path), { bigint: true })
        return `${path} ${size} ${mtimeNs}`
      })
      .join('\n')
  } catch {
    return null
  }
}
