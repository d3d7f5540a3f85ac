import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { writeKeyPair } from '../support/key-pair.ts'
import { exits } from '../support/run-cli.ts'
import { PIPELINE, SMALL, type Workspace } from '../support/workspace.ts'
import { ONE_SLOT, trial } from './trial.ts'

async function views({ call, json, manifest }: Workspace) {
  const { runs } = await manifest()
  const { value: status } = await json('status')
  return { manifest: runs.at(-1)!.error, status, text: (await call('status')).stdout }
}

it('a refused token is told where other chains have no budget left', async () => {
  const parts = { service: { token_env: 'OTHER' }, extract: { domains: SMALL.domains } }
  const here = await trial(parts, {}, { OTHER: 'not-the-token-of-anybody' })
  const { stdout } = await exits(3, here.call('run', '--json', '--max-requests', '1'))
  expect(JSON.parse(stdout)).toMatchObject({ requests: 1, error: { kind: 'credentials' } })
})

it('a partition that failed is the reason of its run; a run without fault takes it away', async () => {
  const faults = [{ kind: 'status', status: 400, requests: [1] }] as const
  const here = await trial({}, { faults })
  const { error } = JSON.parse((await exits(1, here.call('run', '--json'))).stdout)
  expect(error).toMatchObject({ kind: 'refused', where: 'domain.scatterholt.com/2024-01-01..2024-02-01' })
  expect((await views(here)).manifest).toEqual(error)
  await exits(0, here.call('run'))
  const { manifest, status, text } = await views(here)
  expect([manifest, status.last_run.error]).toEqual([null, null])
  expect(text).toMatch(/^last run: complete, /m)
  expect(text).not.toMatch(/^next: /m)
})

it('a used-up budget is told with the command that goes on, and with the rows that readers do not see yet', async () => {
  const here = await trial({ extract: ONE_SLOT })
  const { stdout } = await exits(4, here.call('run', '--max-requests', '1'))
  expect(stdout).toMatch(/^ {2}in shards +0 of 2 rows; 2 wait for their shards to end$/m)
  const { status, text } = await views(here)
  expect(status.last_run).toMatchObject({ status: 'budget', error: { kind: 'quota' } })
  expect(text).toMatch(/^last run: stopped at the budget or the quota, /m)
  expect(text).toContain('The budget of 1 request is used up')
  expect(text).toMatch(/^next: spillway run /m)
})

it('a run at work is named with its process', async () => {
  const here = await trial({ extract: ONE_SLOT }, { faults: [{ kind: 'hang', requests: [2] }] })
  const running = here.start('run', PIPELINE)
  await expect.poll(() => here.searches().length).toBe(2)
  const during = (await here.call('status')).stdout
  expect(during).toMatch(/^ {2}A run began at \S+ and is at work$/m)
  expect(during).toMatch(/^at work: process \d+ on host .*, last heartbeat \d\.\d s ago$/m)
  const { holder } = (await here.json('status')).value
  const text = expect.any(String)
  const [pid, since] = [expect.any(Number), text]
  expect(holder).toEqual({ pid, host: text, since, heartbeat_at: text, is_late: false })
  running.child.kill('SIGKILL')
  await running.result
  const { stdout } = await here.call('status')
  expect(stdout).toMatch(/^ {2}The run that began at .* has left no end: it was killed, or could not write$/m)
  expect(stdout).not.toContain('at work')
})

it('a table is behind until it is loaded again, or the data set begins anew', async () => {
  const here = await trial({ extract: ONE_SLOT })
  const overdue = async () => (await here.json('status')).value.overdue
  const load = (...more: string[]) => exits(0, here.call('load', '--to', 'duckdb:leaks.db', ...more))
  await exits(4, here.call('run', '--max-requests', '1'))
  await load()
  await load('--table', 'others')
  expect(await overdue()).toEqual([])
  await exits(0, here.call('run'))
  await load('--table', 'others')
  const behind =
    /^the table credentials in duckdb:leaks\.db was loaded at \d{4}-.*Z, and the data set has changed since: see `load`$/
  expect(await overdue()).toEqual([expect.stringMatching(behind)])
  await load()
  expect(await overdue()).toEqual([])
  await exits(0, here.call('run', '--redo', '*'))
  expect(await overdue()).toHaveLength(2)
  await exits(4, here.call('run', '--fresh', '--yes', '--max-requests', '1'))
  expect(await overdue()).toEqual([])
})

it('status says that the summary page is not that of the data set, until a command has written it', async () => {
  const here = await trial()
  await exits(0, here.call('run'))
  const page = join(here.output, '_report.html')
  const before = readFileSync(page)
  await exits(0, here.call('run', '--redo', '*/*'))
  writeFileSync(page, before)
  expect((await here.call('status')).stdout).toContain('to do: the summary page is not that of the data set')
  rmSync(page)
  expect((await here.json('status')).value.overdue).toEqual([expect.stringContaining('see `summary`')])
  await exits(0, here.call('summary'))
  expect((await here.json('status')).value.overdue).toEqual([])
  // A load that cannot leave a note of itself is a load.
  writeFileSync(join(here.output, '_state/loads'), '')
  await exits(0, here.call('load', '--to', 'duckdb:leaks.db'))
})

it('a field named __proto__ is a name like any other', async () => {
  const rewrite = (text: string) => text.replaceAll('"hash":', '"__proto__":1,"constructor":2,"hash":')
  const here = await trial({}, { faults: [{ kind: 'rewrite', rewrite }] })
  await exits(0, here.call('run'))
  const { rows } = (await here.manifest()).totals
  const unknown = JSON.parse(readFileSync(join(here.output, '_manifest.json'), 'utf8')).unknown_fields
  expect(Object.entries(unknown).sort().flat()).toEqual(['__proto__', rows, 'constructor', rows])
  await exits(0, here.call('verify'))
  writeKeyPair(here.folder)
  await exits(0, here.call('sign', '--key', 'key.pem'))
  await exits(0, here.call('evidence', '--output', 'evidence.tar'))
  // The next run reads the checkpoint and loses nothing of it.
  await exits(0, here.call('run', '--redo', '*/*'))
  const later = JSON.parse(readFileSync(join(here.output, '_manifest.json'), 'utf8')).unknown_fields
  expect(Object.entries(later).sort()[0]![0]).toBe('__proto__')
})
