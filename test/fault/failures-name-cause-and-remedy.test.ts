import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { describeOwner, lockFileText } from '../../src/state/lock/lock-file.ts'
import { BUCKET, bucketHere } from '../support/bucket.ts'
import { carryOut } from '../support/in-this-process.ts'
import { shardPaths } from '../support/read-shards.ts'
import { type Ended, exits } from '../support/run-cli.ts'
import { type Fault, type FaultEffect, startSandbox } from '../support/sandbox.ts'
import { readSummaryPage } from '../support/summary-page.ts'
import { some } from '../support/thorough.ts'
import {
  type Environment,
  PIPELINE,
  type PipelineParts,
  SMALL,
  type Workspace,
  workspaceFor,
} from '../support/workspace.ts'
import { diskFault } from './support.ts'

const months = (until: string) => ({
  ...{ domains: ['scatterholt.com'], page_size: 20, concurrency: 1 },
  windows: { from: '2024-01-01', until, every: 'month' },
})

type World = {
  readonly here: Workspace
  /** A run whose end is a failure. */
  start(env?: Environment, ...flags: string[]): Promise<Ended>
  /** What the service does from now on in place of its work, after so many searches. */
  trouble: { effect: FaultEffect | null; after: number }
  readonly page: () => Promise<string>
}

/** Two months are exported, and the file requests four. */
async function world(
  load: PipelineParts['load'] = {},
  env: Environment = {},
  pageOf?: () => string,
): Promise<World> {
  const trouble: World['trouble'] = { effect: null, after: 0 }
  const fault: Fault = {
    ...{ kind: 'status', status: 400 },
    when: () =>
      trouble.effect !== null && trouble.after-- <= 0 && Boolean(Object.assign(fault, trouble.effect)),
  }
  const sandbox = await startSandbox({ ...SMALL, records: 600, faults: [fault] })
  const parts = { service: { retries: 1 }, load: load ?? {} }
  const here = await workspaceFor(sandbox, { ...parts, extract: months('2024-03-01') }, env, carryOut)
  const start: World['start'] = (more = {}, ...flags) =>
    here.with(more).call('run', '--no-progress', ...flags)
  expect(await here.call('run')).toMatchObject({ code: 0 })
  await here.write({ ...parts, extract: months('2024-05-01') })
  const page = async (): Promise<string> =>
    textOf(pageOf === undefined ? await readSummaryPage(here.output) : pageOf())
  return { here, start, trouble, page }
}

function textOf(html: string): string {
  return /<header>(.*?)<\/header>/s
    .exec(html)![1]!
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#39;/g, "'")
    .replace(/&#34;/g, '"')
    .replace(/\s+/g, ' ')
}

type Case = {
  /** Makes the start fail. @returns how it ended; null: it was killed */
  readonly fail: (world: World) => Promise<Ended | null>
  readonly code?: number
  readonly state: 'stopped' | 'damaged' | RegExp
  readonly cause: RegExp
  /** As the page can know it; default: as all others do. */
  readonly onPage?: RegExp
  /** What the first remedy says, done; without one the cause goes by itself. */
  readonly mend?: (world: World) => Promise<unknown> | unknown
  /** Flags of the run that then exports all. */
  readonly flags?: (status: string) => readonly string[]
}

const meets =
  (effect: FaultEffect, after = 1): Case['fail'] =>
  ({ trouble, start }) => {
    Object.assign(trouble, { effect, after })
    return start()
  }

const CASES: Readonly<Record<string, Case>> = {
  'a disk without room': {
    fail: ({ start, here }) => start(diskFault(here.output, 'room:150000')),
    ...{ code: 1, state: 'stopped', cause: /The disk has room for 0\.\d MB more/ },
  },
  'an empty token': {
    fail: ({ start }) => start({ SPILLWAY_TOKEN: '' }),
    ...{ code: 2, state: 'stopped', cause: /SPILLWAY_TOKEN is (?:empty|not set)/ },
  },
  'a token that expires': {
    fail: meets({ kind: 'status', status: 401, code: 'TOKEN_EXPIRED' }),
    ...{ code: 3, state: 'stopped', cause: /The service responded with 401/ },
  },
  'a 429 that stays': {
    fail: meets({ kind: 'status', status: 429, retryAfter: '0' }),
    ...{ code: 1, state: /stopped|incomplete/, cause: /429/ },
  },
  'an outage': {
    fail: ({ start }) => start({ SPILLWAY_BASE_URL: 'http://127.0.0.1:9' }),
    ...{ code: 1, state: 'stopped', cause: /127\.0\.0\.1/ },
  },
  'a quota that ends': {
    fail: meets({
      ...{ kind: 'status', status: 403, code: 'QUOTA_EXCEEDED' },
      headers: { 'x-flare-global-searches-remaining': '0' },
    }),
    ...{ code: 4, state: 'stopped', cause: /The service responded with 403.*4 partitions left/ },
  },
  'kill -9': {
    async fail({ trouble, here }) {
      Object.assign(trouble, { effect: { kind: 'hang' }, after: 1 })
      const running = here.start('run', PIPELINE)
      const before = here.searches().length
      await expect.poll(() => here.searches().length).toBe(before + 2)
      running.child.kill('SIGKILL')
      await running.result
      return null
    },
    ...{ state: 'stopped', cause: /has left no end: it was killed/, onPage: /it is at work, or was killed/ },
  },
  'an edited setting, and an invalid file after it': {
    async fail({ here, start }) {
      // It asks for no key that would not help.
      await here.write({ extract: months('2024-05-01'), transform: { secret: 'hmac' } })
      expect(await start()).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('begun with other settings'),
      })
      expect((await here.call('status')).stdout).toContain('begun with other settings')
      await here.write({ extract: months('2024-05-01'), transform: { secrets: 'hmac' } })
      return start()
    },
    ...{ code: 2, state: 'stopped', cause: /unknown key `secrets`/ },
    mend: ({ here }) => here.write({ extract: months('2024-05-01') }),
  },
  'a deleted shard': {
    async fail({ here, start }) {
      rmSync(join(here.output, (await shardPaths(here.output))[0]!))
      return start()
    },
    ...{ code: 1, state: 'damaged', cause: /A shard is missing/ },
    flags: (status) => ['--redo', /run --redo (\S+)`/.exec(status)![1]!],
  },
  'half of a copy': {
    async fail({ here, start }) {
      cpSync(here.output, join(here.folder, 'whole'), { recursive: true })
      for (const path of (await shardPaths(here.output)).slice(1)) rmSync(join(here.output, path))
      return start()
    },
    ...{ code: 1, state: 'damaged', cause: /A shard is missing/ },
    mend: ({ here }) =>
      cpSync(join(here.folder, 'whole/credentials'), join(here.output, 'credentials'), { recursive: true }),
  },
  'a target that is out of reach, before anything is exported': {
    fail: ({ start }) => start({}, '--load', 'postgres://etl@127.0.0.1:9/leaks'),
    ...{ code: 1, state: 'stopped', cause: /127\.0\.0\.1/ },
  },
}

it.each(some(Object.keys(CASES), 4))(
  '%s: status, page, exit code and the last line of stderr say so, and the remedy works',
  async (name) => {
    const { fail, code, state, cause, onPage = cause, mend, flags } = CASES[name]!
    const made = await world()
    const { here, start, trouble, page } = made
    const ended = await fail(made)
    if (ended !== null) {
      expect(ended.code, ended.stderr).toBe(code)
      expect(lastMessage(ended.stderr)).toMatch(cause)
    }
    const { stdout } = await here.call('status')
    expect(stdout).toMatch(cause)
    const { verdict, covers } = (await here.json('status')).value as Told
    expect([verdict.state, verdict.next]).toEqual([expect.stringMatching(state), expect.stringMatching(/\w/)])
    if (state === 'stopped') expect(covers?.from).toBe('2024-01-01T00:00:00Z')
    expect(await page()).toMatch(onPage)
    if (onPage === cause) expect(await page()).toContain(/^trial: (.*)$/m.exec(stdout)![1])
    trouble.effect = null
    await mend?.(made)
    const after = await start({}, ...(flags?.(stdout) ?? []))
    expect(after.code, after.stderr).toBe(0)
    const rest = flags === undefined ? after : await start()
    expect(rest.code, rest.stderr).toBe(0)
    expect((await here.json('status')).value).toMatchObject({
      verdict: { state: 'complete', what: 'complete: all 4 partitions', next: '' },
      covers: { from: '2024-01-01T00:00:00Z', until: '2024-05-01T00:00:00Z' },
    })
    expect(await page()).toContain('2024-01-01 to 2024-04-30 Complete: all 4 partitions')
    await here.expectRows(['scatterholt.com'], { from: '2024-01-01', until: '2024-05-01' })
  },
)

type Told = {
  readonly verdict: { readonly state: string; readonly what: string; readonly next: string }
  readonly covers: { readonly from: string; readonly until: string } | null
  readonly overdue: readonly string[]
}

/** From where it names the program, or is a line of the log: advice may have lines of its own. */
function lastMessage(stderr: string): string {
  return /(?:^|\n)(?:spillway: |\[)(?:.(?!\n(?:spillway: |\[)))*$/s.exec(stderr.trimEnd())?.[0] ?? ''
}

it('rights to a bucket that are lost: status tries a write, where a run has left no end', async () => {
  const { double, env } = await bucketHere()
  const pageOf = () => Buffer.from(double.objects(BUCKET).get('acme/_report.html')!.bytes).toString()
  const { here, start, page } = await world({ path: `s3://${BUCKET}/acme` }, env, pageOf)
  const denied = { operation: ['PutObject', 'DeleteObject', 'CopyObject'] } as const
  double.cues.fail(
    { ...denied, where: ({ key }) => /log\//.test(key ?? '') },
    { code: 'AccessDenied', skip: 3, times: 1 },
  )
  double.cues.fail(denied, { code: 'AccessDenied', times: Infinity, skip: 12 })
  const ended = await start(env)
  expect(ended.code, ended.stderr).toBe(1)
  expect(lastMessage(ended.stderr)).toMatch(/does not allow it/)
  const { stdout } = await here.call('status')
  expect(stdout).toMatch(/trial: STOPPED.*\n.*does not allow it/)
  expect(await page()).toMatch(/it is at work, or was killed|does not allow it/)
  expect((await here.call('check')).code).toBe(1)
  double.cues.clear()
  await exits(0, here.call('run'))
  expect(await page()).toContain('Complete: all 4 partitions')
})

it('a lock of another machine is shown with the age of its last heartbeat', async () => {
  const { here } = await world()
  const at = new Date(Date.now() - 75_000).toISOString()
  const owner = { ...describeOwner(new Date(at)), host: 'etl-2', boot: 'another', instance: 'another' }
  writeFileSync(join(here.output, '_state/lock.0123456789ab'), lockFileText(owner, 9, true, at))
  const { stdout } = await here.call('status')
  expect(stdout).toMatch(
    /^held by process \d+ on host etl-2, since .*, last heartbeat 1 min 1\d s ago: it has probably ended/m,
  )
  expect((await here.json('status')).value).toMatchObject({ holder: { heartbeat_at: at, is_late: true } })
})

it('a table whose ledger is dropped is named beside the verdict, until it is loaded', async () => {
  const { here, start } = await world()
  const target = 'duckdb:leaks.db'
  await exits(0, here.call('run', '--load', target))
  const instance = await DuckDBInstance.create(join(here.folder, 'leaks.db'))
  const connection = await instance.connect()
  await connection.run('DROP TABLE spillway_loads')
  connection.closeSync()
  instance.closeSync()
  const ended = await start({}, '--load', target)
  expect(ended.code, ended.stderr).toBe(1)
  const { stdout } = await here.call('status')
  expect(stdout).toMatch(/^trial: complete: all 4 partitions$/m)
  expect(stdout).toMatch(
    /^to do: the last load, at .* into the table credentials in duckdb:leaks\.db, failed: /m,
  )
  await here.call('load', '--to', target, '--mode', 'replace')
  expect(((await here.json('status')).value as Told).overdue).toEqual([])
})
