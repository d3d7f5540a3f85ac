import { expect, it } from 'vitest'
import { THOROUGH } from '../support/thorough.ts'
import {
  describeOnEach,
  expectAllOfIt,
  LOOK_MS,
  SHORT_LEASE,
  until,
  type World,
  world,
} from './support/world.ts'

/** Pages are slow enough for a test to act in the middle of one. */
const SLOW = { latencyMs: 60 }
const ORGANIZATION = 'org-0'

/** @returns looks, as of {@link until} */
function pages(here: World, count: number, organization = ORGANIZATION): Promise<number> {
  return until(`${count} pages of ${organization}`, () => here.searches(organization).length >= count)
}

async function pause(here: World): Promise<void> {
  await here.withQueue((queue) =>
    until('the pause is stored', async () => {
      const [entry] = await queue.pipelinesOf(ORGANIZATION).getJobs(['waiting'])
      const standing = entry?.progress as { pausedUntilMs?: number | null } | undefined
      return standing?.pausedUntilMs != null
    }),
  )
}

describeOnEach((backend) => {
  it('a worker is killed: another resumes with the next page', async () => {
    // The first worker cannot complete the export before the second one has started.
    const faults = [{ kind: 'hang', requests: [4] }] as const
    const here = await world({ backend, ...SHORT_LEASE, sandbox: { ...SLOW, records: 300, faults } })
    const first = here.worker()
    await here.submit()
    await pages(here, 4)
    const second = here.workerHere()
    await until('the second worker has started', () => second.log().includes('worker started'))
    first.kill('SIGKILL')
    await first.ended
    const sent = here.searches().length
    const looks = await pages(here, sent + 1)
    // A busy machine delays looks as it delays the second worker.
    expect(looks * LOOK_MS).toBeLessThan(15_000)
    expect(second.log()).toContain('job taken')
    await expectAllOfIt(here, [first, second], 1)
  })

  it.runIf(THOROUGH)('a worker stopped for longer than its lease changes nothing when it wakes', async () => {
    const here = await world({ backend, ...SHORT_LEASE, sandbox: { ...SLOW, records: 300 } })
    const sleeper = here.worker()
    await here.submit()
    await pages(here, 3)
    sleeper.kill('SIGSTOP')
    const other = here.workerHere()
    const sent = here.searches().length
    // This also holds while its process exists on the same machine.
    await pages(here, sent + 3)
    sleeper.kill('SIGCONT')
    await expectAllOfIt(here, [sleeper, other])
    expect(other.log()).toContain('job ended')
    sleeper.kill('SIGTERM')
    expect(await sleeper.ended).toBe(0)
  })

  it.runIf(THOROUGH)('a pause of the service holds for the next worker, whatever the clock', async () => {
    const demandedMs = 5_000
    const faults = [{ kind: 'status', status: 429, retryAfter: '5', requests: [3] }] as const
    const here = await world({ backend, ...SHORT_LEASE, sandbox: { ...SLOW, faults } })
    // On PostgreSQL a worker with a clock that is further off takes no job.
    const late = here.worker({ aheadMs: backend === 'postgres' ? -1_500 : -60_000 })
    await here.submit()
    await until('it has been told to wait', () => late.log().includes('responded with 429'))
    await pause(here)
    late.kill('SIGKILL')
    await late.ended
    const second = here.workerHere()
    await expectAllOfIt(here, [late, second], 1)
    const [told, next] = here.searches().slice(2)
    expect(next!.at - told!.at).toBeGreaterThanOrEqual(demandedMs)
  })
})
