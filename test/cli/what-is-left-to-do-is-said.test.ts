import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { exits, jsonLines } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'
import { THREE_MONTHS, trial } from './trial.ts'

it('a table that rejects the load leaves a complete export, and the command that loads it', async () => {
  const here = await newWorkspace({ load: { format: 'csv' } })
  const instance = await DuckDBInstance.create(join(here.folder, 'leaks.db'))
  const connection = await instance.connect()
  await connection.run('CREATE TABLE credentials_latest (id VARCHAR)')
  connection.closeSync()
  instance.closeSync()
  const target = 'duckdb:leaks.db'
  const { stdout, stderr } = await exits(2, here.call('run', '--load', target))
  expect(stdout).toContain('complete in')
  expect(stderr).toContain('The export is complete; only the load is left: ')
  expect(stderr).toContain(`load pipeline.yaml --to ${target}`)
})

it('a run that failed ends with an error in the log, whatever the level that is shown', async () => {
  const here = await newWorkspace(
    { service: { retries: 0 } },
    { faults: [{ kind: 'status', status: 500, requests: [1] }] },
  )
  const { stderr } = await exits(1, here.call('run', '--log-format', 'json', '--log-level', 'error'))
  expect(jsonLines(stderr)).toContainEqual(
    expect.objectContaining({ level: 'error', event: 'run.finish', status: 'failed' }),
  )
})

it('another length of windows on a finished data set is said to have no effect', async () => {
  const { call, write } = await trial()
  expect((await call('run')).code).toBe(0)
  await write({ extract: { domains: ['scatterholt.com'], windows: { ...THREE_MONTHS, every: 'week' } } })
  const said = 'extract.windows.every (week) has no effect: all is exported, and its windows (month) stay'
  await exits(0, call('run'), said)
})

it('but not where nothing is exported yet', async () => {
  const from = new Date().toISOString().slice(0, 10)
  const windows = { from, until: 'now' }
  const extract = { domains: ['scatterholt.com'], lag: '48h' }
  const { call, write } = await trial({ extract: { ...extract, windows: { ...windows, every: '1d' } } })
  await exits(0, call('run'))
  await write({ extract: { ...extract, windows: { ...windows, every: 'week' } } })
  const { code, stderr } = await call('run')
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('has no effect')])
})

it('a load.path that is a link to nowhere is named as one', async () => {
  const { call, output } = await trial()
  symlinkSync('nowhere', output)
  await exits(2, call('run'), 'a symbolic link to a folder that is not there')
})

it('a run that flags narrow says of what it is complete, and what of the file is left', async () => {
  const { call } = await trial()
  const first = await exits(0, call('run', '--until', '2024-02-01'))
  expect(first.stdout).toMatch(/^trial: complete for what the flags name in /)
  expect(first.stdout).toMatch(/^ {2}verdict +INCOMPLETE: 2 of 3 partitions not done$/m)
  const { stdout } = await call('status')
  expect(stdout).toMatch(/^last run: complete for what it was called for, .*^next: spillway run /ms)
  const again = await exits(0, call('run', '--until', '2024-02-01', '--json'))
  expect(JSON.parse(again.stdout)).toMatchObject({
    status: 'complete',
    partitions: { total: 1, done: 1 },
    file_partitions: { total: 3, done: 1, failed: 0, pending: 2 },
  })
  const whole = await exits(0, call('run', '--json'))
  expect(JSON.parse(whole.stdout)).not.toHaveProperty('file_partitions')
})

it('with --json an error is an object on stdout, whatever the command', async () => {
  const { call } = await trial()
  const error = {
    kind: 'config',
    what: expect.any(String),
    where: expect.any(String),
    next: expect.any(String),
  }
  for (const [command = '', ...flags] of [
    ['verify', '--json'],
    ['load', '--to', 'duckdb:x.db', '--json'],
    ['query', 'SELECT 1', '--json'],
  ]) {
    const { stdout } = await exits(2, call(command, ...flags))
    expect(JSON.parse(stdout)).toEqual({ error })
  }
})
