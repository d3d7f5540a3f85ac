import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { runLibrary } from '../support/library-run.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'
import { THREE_MONTHS, threeMonths, trial } from './trial.ts'

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

const QUIET = ['--no-progress']
const APART = { windows: { ...THREE_MONTHS, per_chain: 1 } }

it('failures are grouped by cause, with the field at fault, and reported once', async () => {
  const { call } = await trial({ transform: { max_quarantined: '1%' } }, { records: 2000, invalidRate: 0.5 })
  const { stdout, stderr } = await exits(1, call('run', ...QUIET))
  expect(stderr.match(/ERROR/g)).toHaveLength(1)
  expect(stdout).toMatch(/^ {2}3 partitions: more than 1% of items rejected .*\(\S+: .*, [\d,]+/m)
  expect(stdout.match(/more than 1%/g)).toHaveLength(1)
  expect(stdout).toMatch(/^ {2}quarantined +[\d,]+ items, in \S+\/_quarantine$/m)
  // It fails again, and costs searches.
  expect(stdout).not.toMatch(/^ *go on /m)
  expect(stdout).toMatch(/^ {2}once corrected +spillway run/m)
  const printed = stdout + stderr
  expect(printed.split('\n').find((line) => line.length > 400)).toBeUndefined()
})

it('the summary contains the reason of exits 3 and 4', async () => {
  const here = await trial({ extract: APART })
  const refused = await exits(3, here.with({ SPILLWAY_TOKEN: 'another-one' }).call('run', ...QUIET))
  expect(refused.stdout).toMatch(/^ {2}stopped: The service responded with 401/m)
  expect(refused.stdout).not.toMatch(/^ *go on /m)
  const budget = await exits(4, here.call('run', '--max-requests', '1', ...QUIET))
  expect(budget.stdout).toMatch(/^ {2}stopped: The budget/m)
  expect(budget.stdout).toMatch(/^ {2}go on +spillway run/m)
  expect(budget.stdout).toContain('spillway query pipeline.yaml "SELECT count(*) FROM credentials"')
  expect(budget.stdout).not.toContain('duckdb')
  expect(budget.stdout).not.toMatch(/^ {2}data set /m)
  const rest = await here.call('run', ...QUIET)
  expect(rest.stdout).toMatch(/^ {2}data set +\d+ rows in all/m)
})

it('after a stop at the end of the quota, the summary does not propose to go on', async () => {
  const { call } = await trial({ extract: APART }, { quota: 100 })
  const { stdout } = await exits(4, call('run', ...QUIET))
  expect(stdout).not.toMatch(/^ *go on /m)
  expect(stdout).toMatch(/^ {2}later +spillway run/m)
})

it('without a terminal a 429 takes one line', async () => {
  const { call } = await trial({}, { faults: [{ kind: 'status', status: 429, retryAfter: '1', times: 1 }] })
  const { stderr } = await exits(0, call('run'))
  expect(stderr).not.toMatch(/wait_ms=0|trying again|partitions_total=/)
})

it('an outage that all chains meet is one warning, and another one once it is over', async () => {
  const domains = Array.from({ length: 6 }, (_, i) => `d${i}.example`)
  const down = { kind: 'status' as const, status: 503, requests: [1, 2, 3, 4, 5, 9] }
  const here = await trial({}, { domains, faults: [down] })
  const { status, warnings } = await runLibrary(here, threeMonths({ extract: { domains } }))
  expect(status).toBe('complete')
  expect(warnings.filter((message) => message === 'trying again')).toHaveLength(2)
})

it('if no request reached the service, the summary suggests to check it first', async () => {
  const env = { SPILLWAY_BASE_URL: 'http://127.0.0.1:9' }
  const { call } = await trial({ service: { retries: 1 } }, {}, env)
  const { stdout, stderr } = await exits(1, call('run', '--from', '2024-02-01', ...QUIET))
  expect(stderr.match(/trying again/g)).toHaveLength(1)
  expect(stdout).toMatch(/^ {2}find out why +spillway check pipeline.yaml$/m)
  expect(stdout).toMatch(
    /^ {2}once corrected +spillway run pipeline.yaml \(for the same part, with the same flags\)$/m,
  )
  expect(stdout).not.toMatch(/^ *go on /m)
})
