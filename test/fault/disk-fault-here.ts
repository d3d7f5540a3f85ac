import all from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

const DISK_FAULT = join(import.meta.dirname, 'disk-fault.mjs')

/** The functions as Node.js has them, while faults are installed. */
let original: { readonly functions: object; readonly here: object } | null = null
let installed = 0
let ever = 0
/** Each installation reads its settings from the environment, so they come one after the other. */
let last: Promise<unknown> = Promise.resolve()

/**
 * Does the work while this process counts or fails its calls as disk-fault.mjs says, below one folder.
 * @param settings variables for disk-fault.mjs
 */
export async function withDiskFault<T>(
  settings: Readonly<Record<string, string>>,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly calls: readonly string[] }> {
  const installing = last.then(() => install(settings))
  last = installing.catch(() => {})
  const { lines, end } = await installing
  try {
    return { result: await work(), calls: lines }
  } finally {
    end()
    if (--installed === 0) restore()
  }
}

type Installed = { readonly lines: readonly string[]; end(): void }

async function install(settings: Readonly<Record<string, string>>): Promise<Installed> {
  original ??= functionsOfNow()
  installed++
  const variables = { ...settings, DISK_FAULT_HERE: '1' }
  Object.assign(process.env, variables)
  try {
    // Each has a root and counts of its own.
    return await import(/* @vite-ignore */ `${DISK_FAULT}?${++ever}`)
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name]
  }
}

function functionsOfNow() {
  const { openSync, closeSync, writevSync, renameSync, unlinkSync, fdatasync, fsync, statfsSync } = all
  return {
    functions: { ...files },
    here: { openSync, closeSync, writevSync, renameSync, unlinkSync, fdatasync, fsync, statfsSync },
  }
}

function restore(): void {
  if (original === null) return
  Object.assign(files, original.functions)
  Object.assign(all, original.here)
  original = null
  syncBuiltinESMExports()
}
