import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Place, place } from '../e2e/support/place.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'
import { startPostgres } from '../support/postgres/server.mjs'
import { CLI, runCli } from '../support/run-cli.ts'
import { exportHere } from './in-process.ts'
import { holdsAll, isHonest } from './ledger.ts'
import { start } from './start.ts'
import { newTarget } from './targets.ts'

/** By weeks: some twenty shards, enough of them for a kill to come between any two steps. */
async function exported(every: 'week' | 'year' = 'week'): Promise<Place> {
  const here = await place({
    extract: {
      domains: ['scatterholt.com', 'quillmere.net'],
      windows: { from: '2024-01-01', until: '2024-03-10', every },
    },
  })
  await exportHere(here)
  return here
}

describe.each(['duckdb', 'postgres'] as const)('%s', (kind) => {
  it('kills at any instant leave no half shard and none twice', async () => {
    const here = await exported()
    const target = await newTarget(kind, here)
    Object.assign(here.env, target.env)
    let kills = 0
    for (let delayMs = 250; kills < 5; delayMs += 90) {
      const { signal } = await runCli({
        args: ['load', 'pipeline.yaml', '--to', target.url],
        cwd: here.folder,
        env: here.env,
        onStart: (kill) => void setTimeout(() => kill('SIGKILL'), delayMs),
      })
      if (signal !== 'SIGKILL') break
      kills++
      await isHonest(target)
    }
    expect(kills).toBeGreaterThan(0)
    expect((await here.cli('load', 'pipeline.yaml', '--to', target.url)).code).toBe(0)
    await holdsAll(here, target)
  })

  it('loads that find the target held wait and say so; then one loads, and the other finds nothing to do', async () => {
    const here = await exported()
    const target = await newTarget(kind, here)
    Object.assign(here.env, target.env)
    const release = await target.hold()
    const loads = [1, 2].map(() => start(here, 'load', 'pipeline.yaml', '--to', target.url, '--json'))
    await Promise.all(loads.map(({ says }) => says(/waiting for it to end/)))
    await release()
    const ended = await Promise.all(loads.map(({ ended }) => ended))
    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    const { shards } = await here.manifest()
    const loaded = ended.map(({ stdout }) => JSON.parse(stdout).shards.loaded as number)
    expect(loaded.sort((a, b) => a - b)).toEqual([0, shards.length])
    await holdsAll(here, target)
  })
})

describe('a PostgreSQL server', () => {
  it('that goes away in mid-load ends it with exit 1 and a clear word; the next load completes', async () => {
    const here = await exported()
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const target = await newTarget('postgres', here, server.database)
    Object.assign(here.env, target.env)
    // Holds the load where its first rows are about to go in.
    await here.cli('load', 'pipeline.yaml', '--to', target.url)
    await pgRows(target.url, 'truncate credentials, spillway_loads')
    const child = spawn(process.execPath, [CLI, 'load', 'pipeline.yaml', '--to', target.url], {
      cwd: here.folder,
      env: { PATH: process.env.PATH ?? '', ...here.env },
    })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const code = new Promise((resolve) => child.once('exit', resolve))
    while (Number((await pgRows(target.url, 'select count(*) as n from spillway_loads'))[0]?.n) === 0)
      await wait(5)
    await server.kill()
    const ended = await code
    await server.start()
    // It may have been through before the server was gone.
    if (ended !== 0) {
      expect(ended).toBe(1)
      expect(stderr).toMatch(/connection to PostgreSQL ended|can not be reached/)
      expect(stderr).not.toContain(PASSWORD)
    }
    await isHonest(target)
    expect((await here.cli('load', 'pipeline.yaml', '--to', target.url)).code).toBe(0)
    await holdsAll(here, target)
  })

  it('that can not be used is named with what is wrong, exit 1', async () => {
    const here = await exported('year')
    const { url } = await newTarget('postgres', here)
    const wrong = [
      { to: url, password: 'wrong', says: /user or the password/ },
      { to: url, password: '', says: /user or the password/ },
      { to: url.replace(/test_\d+/, 'nowhere'), password: PASSWORD, says: /no such database/ },
      { to: url.replace(/:\d+\//, ':1/'), password: PASSWORD, says: /can not be reached/ },
    ]
    for (const { to, password, says } of wrong) {
      Object.assign(here.env, { PGPASSWORD: password })
      const { code, stderr } = await here.cli('load', 'pipeline.yaml', '--to', to)
      expect(stderr).toMatch(says)
      expect(stderr).not.toMatch(/not-to-be-shown|wrong"/)
      expect(code).toBe(1)
    }
  })

  it('is not asked with a password on the command line: exit 2', async () => {
    const here = await place({})
    const { code, stderr } = await here.cli(
      'load',
      'pipeline.yaml',
      '--to',
      'postgres://me:hunter2@127.0.0.1/db',
    )
    expect(code).toBe(2)
    expect(stderr).toContain('PGPASSWORD')
    expect(stderr).not.toContain('hunter2')
  })
})
