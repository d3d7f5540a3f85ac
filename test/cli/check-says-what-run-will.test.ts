import all from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, it } from 'vitest'
import { withDiskFault } from '../fault/disk-fault-here.ts'
import type { Workspace } from '../support/workspace.ts'
import { trial } from './trial.ts'

const { fsync } = all
afterEach(() => {
  all.fsync = fsync
  syncBuiltinESMExports()
})

/** What `check` and then `run` end with, and the paid requests of both. */
async function verdicts(here: Workspace) {
  const check = await here.call('check')
  const run = await here.call('run')
  return { check, run, searches: here.searches() }
}

it('a disk without room for a page is reported by both, before anything is paid', async () => {
  const here = await trial()
  const { result } = await withDiskFault({ DISK_FAULT_ROOT: here.folder, DISK_FAULT: 'room:1000000' }, () =>
    verdicts(here),
  )
  expect([result.check.code, result.run.code]).toEqual([1, 1])
  expect(result.check.stdout).toMatch(/^no {2}data set +The disk has room for 1\.0 MB/m)
  expect(result.searches).toEqual([])
})

it('so is a file system that cannot fsync a folder', async () => {
  const here = await trial()
  all.fsync = ((_file: number, done: (error: Error) => void) =>
    done(Object.assign(new Error('EINVAL'), { code: 'EINVAL' }))) as typeof all.fsync
  syncBuiltinESMExports()
  const { check, run, searches } = await verdicts(here)
  expect([check.code, run.code]).toEqual([1, 1])
  expect(check.stdout).toMatch(/^no {2}data set +The file system refuses \(EINVAL\)/m)
  expect(searches).toEqual([])
})
