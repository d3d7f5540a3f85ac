import { expect, it, onTestFinished } from 'vitest'
import { PASSWORD, startPostgres } from '../support/postgres/server.mjs'
import { startWire } from './support/wire.ts'
import { expectAllOfIt, IN_FLIGHT, LOAD, until, world } from './support/world.ts'

it('restarted, and gone for a while: workers wait, and no search is sent twice', {
  timeout: 180_000,
}, async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const here = await world(LOAD, { latencyMs: 100 }, { database: await server.database() })
  const workers = [await here.worker(), await here.worker()]
  await here.submit()
  // Longer than it takes to be given up for dead.
  for (const [searches, awayMs] of [
    [15, 0],
    [40, 15_000],
  ] as const) {
    await until('they are at work', () => here.searches().length >= searches)
    await server.kill()
    if (awayMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, 2000))
      const sent = here.searches().length
      await new Promise((resolve) => setTimeout(resolve, awayMs))
      // A turn can be had of the database alone.
      expect(here.searches()).toHaveLength(sent)
    }
    await server.start()
  }
  await expectAllOfIt(here, 0)
  for (const each of workers) {
    each.kill('SIGTERM')
    const { code, stderr } = await each.ended
    expect(code, stderr).toBe(0)
    expect(stderr).toMatch(/database does not answer .*Nothing is committed until then/)
    expect(stderr).toContain('the database answers again')
    expect(stderr).not.toContain('not foreseen')
  }
})

it('cut off from one worker only: that one commits nothing more, others go on', {
  timeout: 180_000,
}, async () => {
  const here = await world(LOAD, { latencyMs: 100 })
  const wire = await startWire(Number(new URL(here.database).port))
  const url = new URL(here.database)
  url.port = String(wire.port)
  const lonely = await here.worker({ env: { SPILLWAY_DATABASE_URL: url.href, PGPASSWORD: PASSWORD } })
  await here.submit()
  await until('it is at work', () => here.searches().length >= 15)
  wire.cut()
  await here.worker()
  await expectAllOfIt(here, IN_FLIGHT)
  wire.mend()
  await until('it is seen again', async () => {
    const { workers } = await here.status()
    return workers.some(({ pid, silent_s }) => pid === lonely.pid && silent_s < 3)
  })
  lonely.kill('SIGTERM')
  expect((await lonely.ended).code).toBe(0)
})
