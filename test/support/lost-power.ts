import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { beforeAll, expect } from 'vitest'
import { scratchFolder } from './at-the-end.ts'

const FAULT = join(import.meta.dirname, '../fault/disk-fault.mjs')

/**
 * Runs a script on a disk that loses power after the script's work: when it makes the folder `end`. The script is
 * bundled with the sources as they are now, so that a test of the sources needs no build.
 * @param script gets the root of a data set, which is returned, and what it is to do
 */
export function losingPowerAfter(script: string): (what: string) => { readonly root: string } {
  let built = ''
  beforeAll(async () => {
    built = scratchFolder()
    const external = ['parquetjs-lite', '@aws-sdk/client-s3']
    const bundle = await rolldown({ input: script, platform: 'node', logLevel: 'silent', external })
    const names = { entryFileNames: 'script.mjs', chunkFileNames: '[name].mjs' }
    await bundle.write({ dir: built, format: 'esm', ...names })
    await bundle.close()
  })
  return (what) => {
    const folder = scratchFolder()
    const path = join(built, 'script.mjs')
    const root = join(folder, 'data')
    const fault = { DISK_FAULT_ROOT: root, DISK_FAULT: 'power:mkdir end' }
    const env = { PATH: process.env.PATH, NODE_OPTIONS: `--import ${FAULT}`, ...fault }
    const { signal } = spawnSync(process.execPath, [path, root, what], { env })
    expect(signal).toBe('SIGKILL')
    expect(existsSync(join(root, 'end'))).toBe(false)
    return { root }
  }
}
