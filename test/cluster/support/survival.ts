import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { diskFault } from '../../fault/support.ts'
import { portOf } from '../../support/listening.ts'
import { pgRows } from '../../support/postgres/client.ts'
import { startPostgres } from '../../support/postgres/server.mjs'
import { random } from '../../support/random.ts'
import { exits } from '../../support/run-cli.ts'
import { seedOf, times } from '../../support/thorough.ts'
import {
  type Backend,
  describeOn,
  expectAllOfIt,
  type Redis,
  SHORT_LEASE,
  startRedis,
  until,
  type WorkerProcess,
  type World,
  world,
} from './world.ts'

/** The order of events still depends on the processes. */
const draw = random(seedOf(20260307))

const LOAD = { latencyMs: [20, 120] as const, records: 600 }

/** By how much any sequence of an organization's searches came sooner than its rate limit allows. */
function earlyMs(here: World, gapMs: number): number {
  let most = 0
  for (const organization of here.organizations) {
    let early = 0
    const times = here.searches(organization).map(({ at }) => at)
    for (let i = 1; i < times.length; i++) {
      early = Math.max(0, early + gapMs - (times[i]! - times[i - 1]!))
      most = Math.max(most, early)
    }
  }
  return most
}

/** Starts one worker after the other, and stops each of them at some point. @returns all of them */
async function stopAgainAndAgain(here: World, count: number, workMs: number): Promise<WorkerProcess[]> {
  const workers: WorkerProcess[] = []
  for (let stopped = 0; stopped < count; stopped++) {
    const worker = here.worker()
    workers.push(worker)
    // Before its start is complete, SIGTERM ends it like any process.
    await until('it has started', () => worker.log().includes('worker started'))
    await pause(draw() * workMs)
    worker.kill('SIGTERM')
    expect(await worker.ended, worker.log()).toBe(0)
  }
  return [...workers, here.worker()]
}

async function server(backend: Backend): Promise<Redis> {
  if (backend === 'redis') return startRedis()
  const postgres = await startPostgres()
  const url = await postgres.database()
  return { url, port: Number(new URL(url).port), kill: () => postgres.kill(), start: () => postgres.start() }
}

/** A connection to a server that can be cut. */
type Wire = {
  readonly port: number
  /** From now on nothing gets through, and neither side is notified. */
  cut(): void
  mend(): void
}

async function startWire(target: number): Promise<Wire> {
  let isCut = false
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => {
        if (!isCut) to.write(bytes)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        if (!isCut) to.destroy()
      })
    }
  })
  return {
    port: await portOf(server),
    cut() {
      isCut = true
    },
    mend() {
      isCut = false
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** What workers promise, whatever happens to them, to the queue and to the disk. */
export function workersSurviveEverything(of: Backend): void {
  describeOn(of, scenarios)
}

function scenarios(backend: Backend): void {
  const begin = (given: Omit<Parameters<typeof world>[0], 'backend'>) =>
    world({ backend, ...SHORT_LEASE, ...given })

  it('kill -9 again and again, over eight organizations and three workers', async () => {
    const kills = times(3, 50)
    const [records, rate] = [times(250, 1500), 10]
    const parts = { service: { requests_per_second: rate } }
    const here = await begin({ organizations: 8, parts, sandbox: { ...LOAD, records } })
    // The largest delay on this machine meanwhile, by which two searches may come closer together.
    const heldUp = monitorEventLoopDelay()
    heldUp.enable()
    const workers = [here.worker(), here.worker(), here.worker()]
    const all = [...workers]
    await here.submit()
    const least = (8 * records) / 10
    let killed = 0
    for (; killed < kills && here.searches().length < least * 0.95; killed++) {
      await pause(300 + draw() * times(1500, 3000))
      const victim = Math.floor(draw() * 3)
      workers[victim]!.kill('SIGKILL')
      await workers[victim]!.ended
      workers[victim] = here.worker()
      all.push(workers[victim])
    }
    expect((await here.submit('--wait')).code).toBe(0)
    heldUp.disable()
    expect(earlyMs(here, 1000 / rate)).toBeLessThan(40 + (2 * heldUp.max) / 1e6)
    // Each has four slots.
    await expectAllOfIt(here, all, killed * 4)
  })

  const slow = { records: times(80, 800), latencyMs: [50, 1500] as const }
  const every = times(0, 1) === 1 ? '1d' : '4d'
  const windows = { from: '2024-01-01', until: '2025-01-01', every, per_chain: 1 }
  const short = { parts: { extract: { windows } }, sandbox: { records: 800, latencyMs: 30 } }

  it.each([
    ['slow responses', 2000, { organizations: 4, sandbox: slow }],
    ['many short chains', 700, { organizations: 2, ...short }],
  ])('SIGTERM again and again, with %s: no request is repeated', async (_, workMs, given) => {
    const here = await begin(given)
    await here.submit()
    await expectAllOfIt(here, await stopAgainAndAgain(here, times(3, 30), workMs))
  })

  it('the queue is restarted, and down for longer than a lease', async () => {
    const queue = await server(backend)
    const here = await begin({ url: queue.url, organizations: 3, sandbox: { ...LOAD, records: 900 } })
    const workers = [here.worker(), here.worker()]
    await here.submit()
    for (const awayMs of [0, times(4_000, 30_000)]) {
      const before = here.searches().length
      await until('more has come', () => here.searches().length > before + 15)
      await queue.kill()
      await pause(awayMs)
      await queue.start()
      await pause(3_000)
    }
    await expectAllOfIt(here, workers)
    for (const worker of workers) worker.kill('SIGTERM')
  })

  it('the queue is emptied: submit resumes', async () => {
    const queue = await server(backend)
    const here = await begin({ url: queue.url, organizations: 3, sandbox: LOAD })
    const worker = here.worker()
    await here.submit()
    await until('it is at work', () => here.searches().length > 15)
    if (backend === 'redis') {
      const { Redis } = await import('ioredis')
      const redis = new Redis(queue.url)
      await redis.flushall()
      redis.disconnect()
    } else {
      const tables = ['job', 'dedup', 'dedup_next']
      await pgRows(queue.url, tables.map((name) => `DELETE FROM bullmq.${name}`).join('; '))
    }
    await expectAllOfIt(here, [worker])
  })

  it('a worker is cut off from the queue alone: another takes over, and it stops by itself', async () => {
    const queue = await server(backend)
    const wire = await startWire(queue.port)
    const here = await begin({ url: queue.url, organizations: 3, sandbox: { ...LOAD, records: 900 } })
    const address = queue.url.replace(`:${queue.port}`, `:${wire.port}`)
    const cut = here.worker({ env: { SPILLWAY_QUEUE_URL: address } })
    await here.submit()
    await until('it is at work', () => here.searches().length > 15)
    wire.cut()
    const other = here.worker()
    await until('another has its jobs', () => other.log().split('job taken').length > 3)
    await until(
      'it has stopped',
      () => cut.log().includes('lease of the job has run out') || cut.log().includes('has taken'),
    )
    wire.mend()
    await expectAllOfIt(here, [cut, other])
  })

  it('clocks are a minute off: on PostgreSQL such workers take no jobs, on Redis they do no harm', async () => {
    const here = await begin({ organizations: 3, sandbox: LOAD })
    const [early, late] = [here.worker({ aheadMs: 60_000 }), here.worker({ aheadMs: -60_000 })]
    const workers = [early, late, here.worker()]
    await expectAllOfIt(here, workers)
    for (const worker of workers) {
      worker.kill('SIGTERM')
      expect(await worker.ended).toBe(0)
    }
    if (backend === 'redis') return
    expect(early.log() + late.log()).not.toContain('job taken')
    expect(early.log()).toMatch(/clock is [56]\d\.\d s off/)
  })

  it('an organization with thousands of domains does not delay small ones, on two slots', async () => {
    const count = times(1_000, 10_000)
    const here = await begin({ organizations: times(8, 50), sandbox: { latencyMs: 5 } })
    const domains = Array.from({ length: count }, (_, n) => `d${n}.org-0.example.com`)
    here.write('org-0', { extract: { domains, max_requests: 'none', page_size: 10_000, concurrency: 4 } })
    here.worker({ concurrency: 2, sliceMs: 500 })
    await exits(0, here.submit('--wait'))
    const large = here.sandbox.requests.filter(
      ({ kind, body }) => kind === 'search' && /"d\d+\.org-0/.test(JSON.stringify(body)),
    )
    // It had many turns, and none of its searches was sent twice.
    expect(large).toHaveLength(count)
    const end = Math.max(...large.map(({ at }) => at))
    const small = here.organizations.slice(1)
    for (const organization of small) {
      await here.expectRows(organization)
      expect(Math.max(...here.searches(organization).map(({ at }) => at))).toBeLessThan(end)
    }
  })

  it('the disk of one organization is full: the others end, and it resumes once there is space', async () => {
    const here = await begin({ organizations: 4, sandbox: LOAD })
    const full = here.worker({ env: diskFault(join(here.folder, 'org-1'), 'full:60') })
    await here.submit()
    const others = ['org-0.yaml', 'org-2.yaml', 'org-3.yaml']
    const { code, stderr } = await here.cli('submit', ...others, '--wait')
    expect(code, stderr + full.log()).toBe(0)
    await until('the message is logged', () => full.log().includes('The disk is full'))
    expect(full.log()).not.toContain('unexpected error')
    full.kill('SIGTERM')
    expect(await full.ended).toBe(0)
    // Pages in flight that could not be stored are requested again.
    await expectAllOfIt(here, [full, here.worker()], 2)
  })
}
