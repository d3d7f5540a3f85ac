import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'
import { startPostgres } from '../support/postgres/server.mjs'
import { exits, runCli, start } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { type PipelineParts, SMALL, type Workspace } from '../support/workspace.ts'
import { loadHere } from './in-process.ts'
import { exportedBeside, holdsAll, isHonest } from './ledger.ts'
import { newTarget } from './targets.ts'

const MAX_KILLS = THOROUGH ? 5 : 1

/** By weeks: some twenty shards, enough for a kill between any two steps. */
const parts = (every: 'week' | 'year' = 'week'): PipelineParts => ({
  extract: { domains: SMALL.domains, windows: { from: '2024-01-01', until: '2024-03-10', every } },
})
const exported = (every?: 'week' | 'year'): Promise<Workspace> => exportedWorkspace(parts(every))

/** Kills a load again and again, later each time, until it ends before the kill; a busy machine may kill the first too late. */
async function killed(
  here: Workspace,
  args: readonly string[],
  check: () => Promise<unknown>,
): Promise<void> {
  for (let [kills, ms] = [0, 250]; kills < MAX_KILLS; ) {
    const onStart = (kill: (signal: NodeJS.Signals) => void) => void setTimeout(() => kill('SIGKILL'), ms)
    const { signal } = await runCli({ args, cwd: here.folder, env: here.env, onStart })
    if (signal !== 'SIGKILL' && kills > 0) break
    if (signal === 'SIGKILL') [kills, ms] = [kills + 1, ms + 90]
    else ms /= 2
    await check()
  }
}

describe.each(THOROUGH ? (['duckdb', 'postgres'] as const) : (['duckdb'] as const))('%s', (kind) => {
  it('kills at any instant leave no partial shard and no shard twice', async () => {
    const { here, target, neighbour } = await exportedBeside(kind, parts())
    Object.assign(here.env, target.env)
    const args = ['load', 'pipeline.yaml', '--to', target.url]
    await killed(here, args, () => isHonest(target))
    await exits(0, here.cli(...args))
    await holdsAll(here, target)
    await neighbour.isUnchanged(true)
  })

  it.runIf(THOROUGH)('kills at any instant of --supersede leave one of the data sets, whole', async () => {
    const { here, target, neighbour } = await exportedBeside(kind, parts())
    Object.assign(here.env, target.env)
    const { data_set_id: id, totals } = await here.manifest()
    const args = ['load', 'pipeline.yaml', '--to', target.url, '--supersede', neighbour.id]
    const found = () =>
      target.rows('select spillway_data_set as id, count(*)::int as n from credentials group by 1')
    const [before, after] = [[{ id: neighbour.id, n: neighbour.rows }], [{ id, n: totals.rows }]]
    await killed(here, args, async () => expect([before, after]).toContainEqual(await found()))
    await exits(0, here.cli(...args))
    expect(await found()).toEqual(after)
  })
})

describe('a PostgreSQL server', () => {
  it.runIf(THOROUGH)(
    'that crashes during a load ends the load with exit 1 and a clear message; the next load completes',
    async () => {
      const here = await exported()
      const server = await startPostgres()
      onTestFinished(() => server.stop())
      const target = await newTarget('postgres', here, server.database)
      Object.assign(here.env, target.env)
      // Creates the tables, so that the next load inserts at once.
      await here.cli('load', 'pipeline.yaml', '--to', target.url)
      await pgRows(target.url, 'truncate credentials, spillway_loads')
      const { result } = start(['load', 'pipeline.yaml', '--to', target.url], here.folder, here.env)
      while (Number((await pgRows(target.url, 'select count(*) as n from spillway_loads'))[0]?.n) === 0)
        await wait(5)
      await server.kill()
      const { code, stderr } = await result
      await server.start()
      // The load may have ended before the server did.
      if (code !== 0) {
        expect(code).toBe(1)
        expect(stderr).toMatch(/connection to PostgreSQL ended|cannot be reached|starting up or shutting/)
        expect(stderr).not.toContain(PASSWORD)
      }
      await isHonest(target)
      await exits(0, here.call('load', '--to', target.url))
      await holdsAll(here, target)
    },
  )

  it('with row-level security on the table ends the load: hidden rows would be there twice', async () => {
    const here = await exported('year')
    const { url } = await newTarget('postgres', here)
    const role = `loader_${process.pid}`
    await pgRows(
      url,
      `create role ${role} login password '${PASSWORD}'; grant create, usage on schema public to ${role}`,
    )
    const target = url.replace('//postgres@', `//${role}@`)
    await loadHere(here, { url: target }, 'upsert')
    const count = async () => Number((await pgRows(url, 'select count(*) as n from credentials'))[0]?.n)
    const rows = await count()
    await pgRows(
      url,
      'alter table credentials enable row level security; alter table credentials force row level security; create policy mine on credentials for insert with check (true); delete from spillway_loads',
    )
    await expect(loadHere(here, { url: target }, 'upsert')).rejects.toMatchObject({
      kind: 'target',
      what: expect.stringContaining('row-level security'),
      next: expect.stringContaining('BYPASSRLS'),
    })
    expect(await count()).toBe(rows)
    await pgRows(url, `drop owned by ${role} cascade; drop role ${role}`)
  })

  it('that rejects the password ends the load with exit 3, with the reason alone on stderr', async () => {
    const here = await exported('year')
    const { url } = await newTarget('postgres', here)
    // The library that reads it would print a message of its own.
    const passFile = join(here.folder, 'pgpass')
    await writeFile(passFile, `*:*:*:*:${PASSWORD}\n`, { mode: 0o644 })
    Object.assign(here.env, { PGPASSFILE: passFile })
    const told = /^spillway: PostgreSQL asks for the password of the user, and none is set .*chmod 600.*\n$/
    const { stderr } = await exits(3, here.call('load', '--to', `${url}?sslmode=prefer`), told)
    expect(stderr).not.toContain(PASSWORD)
  })
})
