import { expect, test } from 'vitest'
import type { Clock } from '../../src/core/index.ts'
import { readPlan } from '../../src/data-set/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { sendPage, serveSearches } from '../extract/support.ts'
import { worldAt } from './world.ts'

const PAGES = 8
const SHARE = 'domains: [acme.com], monthly_searches: 3, page_size: 100'

/** One query of eight pages, the time at which they are requested, and a run or a plan at that time. */
async function world(onRequest: (count: number, at: (time: string) => void) => void = () => {}) {
  let nowMs = 0
  const at = (time: string): void => {
    nowMs = Date.parse(time)
  }
  at('2024-01-30')
  const server = await serveSearches((_request, response, index) => {
    onRequest(index + 1, at)
    response.setHeader('x-flare-global-searches-remaining', 1000 - index)
    sendPage(response, index + 1 < PAGES ? `c${index}` : null, [])
  })
  const here = await worldAt(server.url, SHARE)
  const clock: Clock = {
    now: () => nowMs,
    monotonicMs: () => performance.now(),
    sleep: async (_ms, signal) => signal.throwIfAborted(),
  }
  return {
    at,
    requestsSent: () => server.received.length,
    run: () => here.run(undefined, undefined, { clock }),
    plan: async () => {
      const pipeline = await here.read()
      return readPlan(pipeline, await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 'token' }, clock }))
    },
  }
}

test('the runs of one month share its searches, and the next month continues', async () => {
  const { at, requestsSent, run, plan } = await world()
  const { status, error } = await run()
  expect({ status, requestsSent: requestsSent() }).toEqual({ status: 'budget', requestsSent: 3 })
  expect(error).toMatchObject({
    kind: 'quota',
    what: 'Of the 3 searches for 2024-01, 0 are left, and the next page may cost 1; 1 of 1 partition left',
  })
  expect(error?.next).toContain('Run again from 2024-02-01T00:00:00Z on')
  await expect(plan()).resolves.toMatchObject({ minRequests: 1, searchesThisMonth: 3 })

  at('2024-01-31T23:59:59.999Z')
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 0 })
  at('2024-02-01')
  await expect(plan()).resolves.toMatchObject({ searchesThisMonth: 0 })
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 3 })
  at('2024-12-31')
  await expect(run()).resolves.toMatchObject({ status: 'complete', requests: 2 })
  expect(requestsSent()).toBe(PAGES)
})

test('the searches of a run over several months are recorded for each of them', async () => {
  const { at, run, plan } = await world((count, at) => {
    if (count === 2) at('2024-02-10')
    if (count === 3) at('2024-03-10')
  })
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 6 })
  const known: number[] = []
  for (const month of ['2024-01', '2024-02', '2024-03', '2024-04']) {
    at(month)
    known.push((await plan()).searchesThisMonth)
  }
  // The second search is in flight while January ends, and counts for one of the two.
  expect([
    [2, 1, 3, 0],
    [1, 2, 3, 0],
  ]).toContainEqual(known)
})
