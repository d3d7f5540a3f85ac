import { expect, it } from 'vitest'
import { SAME } from '../e2e/support/rows.ts'
import {
  expectAllOfIt,
  IN_FLIGHT,
  LOAD,
  until,
  type WorkerProcess,
  type World,
  world,
} from './support/world.ts'

function atWork(here: World, { pid }: WorkerProcess): Promise<void> {
  return until('it holds a chain', async () => {
    const held = await here.query(
      `SELECT 1 FROM spillway.chains JOIN spillway.workers USING (worker) WHERE pid = ${pid} AND state = 'active'`,
    )
    return held.length > 0
  })
}

/** Milliseconds until chains that a worker held are in other hands. */
async function takeOver(here: World, dead: WorkerProcess): Promise<number> {
  const began = Date.now()
  const held = (await here.status()).workers.find(({ pid }) => pid === dead.pid)?.chains ?? []
  expect(held.length).toBeGreaterThan(0)
  await until('all of its chains are held by others, or done', async () => {
    const chains = held.map(({ chain }) => chain).join(', ')
    const left = await here.query(
      `SELECT 1 FROM spillway.chains c JOIN spillway.workers w USING (worker) WHERE chain IN (${chains}) AND pid = ${dead.pid} AND state = 'active'`,
    )
    return left.length === 0
  })
  return Date.now() - began
}

it('kill -9 of one after the other', { timeout: 120_000 }, async () => {
  const here = await world(LOAD, { latencyMs: 150 })
  const workers = [await here.worker(), await here.worker()]
  await here.submit()
  let deaths = 0
  for (const searches of [10, 40]) {
    await until('they are at work', () => here.searches().length >= searches)
    const [victim] = workers.splice(0, 1)
    await atWork(here, victim!)
    victim!.kill('SIGKILL')
    deaths++
    workers.push(await here.worker())
    // Seen for nine seconds no more, looked for every second and a half.
    expect(await takeOver(here, victim!)).toBeLessThan(15_000)
  }
  await expectAllOfIt(here, deaths * IN_FLIGHT)
})

it('one that is stopped for longer than its lease, and goes on then', { timeout: 120_000 }, async () => {
  const here = await world(LOAD, { latencyMs: 150 })
  const [sleeper] = [await here.worker(), await here.worker()]
  await here.submit()
  await until('they are at work', () => here.searches().length >= 20)
  await atWork(here, sleeper!)
  sleeper!.kill('SIGSTOP')
  await takeOver(here, sleeper!)
  sleeper!.kill('SIGCONT')
  await expectAllOfIt(here, IN_FLIGHT)
  sleeper!.kill('SIGTERM')
  const { code, stderr } = await sleeper!.ended
  expect([code, stderr]).toEqual([0, expect.stringMatching(/Another (?:run|worker) has taken/)])
})

it('all of them gone, and others later', { timeout: 120_000 }, async () => {
  const here = await world(LOAD, { latencyMs: 100 })
  const first = [await here.worker(), await here.worker()]
  await here.submit()
  await until('they are at work', () => here.searches().length >= 30)
  for (const each of first) each.kill('SIGKILL')
  await Promise.all(first.map(({ ended }) => ended))
  // An hour, to the database.
  await here.query(`UPDATE spillway.workers SET seen_at = seen_at - interval '1 hour'`)
  await here.worker()
  await expectAllOfIt(here, IN_FLIGHT)
})

it('told to end, it commits what is in hand and hands the rest back: no search is sent twice', async () => {
  const here = await world(LOAD, { latencyMs: 150 })
  const first = await here.worker({ concurrency: 6 })
  await here.submit()
  await until('it is at work', () => here.searches().length >= 20)
  first.kill('SIGTERM')
  expect((await first.ended).code).toBe(0)
  expect((await here.status()).workers).toEqual([])
  const sent = here.searches().length
  await here.worker()
  await until('another one goes on at once', () => here.searches().length > sent)
  await expectAllOfIt(here, 0)
})

it('a chain whose workers all die fails with its reason, and the others end', {
  timeout: 120_000,
}, async () => {
  const here = await world({ ...LOAD, extract: { concurrency: 1 } }, { latencyMs: 20 })
  await here.submit()
  await here.query(`UPDATE spillway.chains SET attempts = 9 WHERE chain = 0`)
  const victim = await here.worker()
  await until('it is at work', () => here.searches().length >= 3)
  victim.kill('SIGKILL')
  await here.query(`UPDATE spillway.workers SET seen_at = seen_at - interval '1 hour'`)
  await here.worker()
  const { code, stdout, summary } = await here.submitAndWait()
  expect(code).toBe(1)
  expect(stdout).toContain('10 workers died with it')
  expect(summary).toMatchObject({ status: 'failed', partitions: { total: 36, failed: 0 } })
  // What it had committed counts, and the next submit goes on with it.
  const again = await here.submitAndWait()
  expect(again.code).toBe(0)
  expect(await here.difference()).toEqual(SAME)
})
