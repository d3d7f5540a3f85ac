import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ends: (() => unknown)[] = []

/** Called after the tests of each file by `clean-process.ts`: files share this module. */
export async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end()
}

/** Ends something when the tests of the file are done. Concurrent tests cannot use `onTestFinished`. */
export function atTheEnd(end: () => unknown): void {
  ends.push(end)
}

/** An empty folder that exists until the tests of the file are done. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-scratch-'))
  atTheEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
