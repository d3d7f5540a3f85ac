import { setMaxListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/index.ts'
import { rateLimit } from '../../src/extract/index.ts'
import { fakeClock } from './support.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

/** Takes `count` permits requested at once, one after the other. @returns when each was taken */
async function takeAll(limit: ReturnType<typeof rateLimit>, clock: Clock, count: number): Promise<number[]> {
  const times: number[] = []
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const permit = await limit.permit(never)
      // In the order of the requests.
      expect(times).toHaveLength(index)
      expect(permit.take()).toBe(true)
      times.push(clock.monotonicMs())
    }),
  )
  return times
}

const gaps = (times: readonly number[]): number[] => times.slice(1).map((time, index) => time - times[index]!)

/** A clock whose timers are late, as real ones are. */
function lateClock(lateMs: () => number): ReturnType<typeof fakeClock> {
  const clock = fakeClock()
  return { ...clock, sleep: (ms, signal) => clock.sleep(ms + lateMs(), signal) }
}

describe('the rate', () => {
  it('halves with each 429 while the limit of the service is unknown, down to the limit', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 4, slowestPerSecond: 1, clock })
    await takeAll(limit, clock, 1)
    for (const ms of [250, 500, 1000, 1000]) {
      const [least, most] = [ms, ms * 1.05]
      const spacing = gaps(await takeAll(limit, clock, 4)).slice(-1)[0]!
      expect(spacing).toBeGreaterThanOrEqual(least)
      expect(spacing).toBeLessThanOrEqual(most)
      limit.slowDown(clock.monotonicMs())
    }
  })

  it('is halved once by all 429s to requests that were in flight, and comes back after a minute', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 4, slowestPerSecond: 1, clock })
    const spacing = async (): Promise<number> => gaps(await takeAll(limit, clock, 3)).at(-1)!
    const sent = await takeAll(limit, clock, 4)
    const incidents = sent.map((sentMs) => limit.slowDown(sentMs))
    expect(incidents).toEqual([true, false, false, false])
    expect(await spacing()).toBeLessThanOrEqual(500 * 1.05)
    await takeAll(limit, clock, 130)
    expect(await spacing()).toBeLessThanOrEqual(250 * 1.05)
    // A 429 after that: the next attempt comes after two minutes.
    expect(limit.slowDown(clock.monotonicMs())).toBe(true)
    await takeAll(limit, clock, 130)
    expect(await spacing()).toBeGreaterThanOrEqual(500)
    await takeAll(limit, clock, 130)
    expect(await spacing()).toBeLessThanOrEqual(250 * 1.05)
  })

  it('keeps 300 searches at 1/s within 2 % of 300 s, and never less than a second apart', async () => {
    const clock = lateClock(() => 1.5)
    const times = await takeAll(rateLimit({ requestsPerSecond: 1, clock }), clock, 300)
    expect(Math.min(...gaps(times))).toBeGreaterThanOrEqual(1000)
    expect(times.at(-1)).toBeLessThanOrEqual(1.02 * 300_000)
  })

  it('never sends closer together than the tier allows, however late the timers and slow the senders', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0.1, max: 50, noNaN: true }),
        fc.array(fc.record({ late: fc.nat(400), connecting: fc.nat(3000), idle: fc.nat(3000) }), {
          minLength: 2,
          maxLength: 12,
        }),
        async (requestsPerSecond, steps) => {
          let step = 0
          const clock = lateClock(() => steps[step % steps.length]!.late)
          const limit = rateLimit({ requestsPerSecond, clock })
          const times: number[] = []
          for (const { connecting, idle } of steps) {
            step++
            await clock.sleep(idle, never)
            const permit = await limit.permit(never)
            await clock.sleep(connecting, never)
            permit.take()
            times.push(clock.monotonicMs())
          }
          expect(Math.min(...gaps(times))).toBeGreaterThanOrEqual(1000 / requestsPerSecond)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('begins with the arrival of a request that was late, as far as its response tells', async () => {
    for (const [lateMs, responseMs] of [
      [0, 5],
      [95, 99],
      // Who takes longer says nothing of the way.
      [5, 800],
    ] as const) {
      const clock = fakeClock()
      const limit = rateLimit({ requestsPerSecond: 1, clock })
      await takeAll(limit, clock, 1)
      const arrivals: number[] = []
      for (let i = 0; i < 5; i++) {
        const permit = await limit.permit(never)
        const sentMs = clock.monotonicMs()
        permit.take()
        arrivals.push(sentMs + (i % 2 === 0 ? lateMs : 0))
        await clock.sleep(responseMs, never)
        limit.responded(sentMs)
      }
      expect(Math.min(...gaps(arrivals))).toBeGreaterThanOrEqual(1000)
      expect(Math.max(...gaps(arrivals))).toBeLessThanOrEqual(1000 + 100 + lateMs)
    }
  })

  it('grants the next permit only when the one before is taken or released', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 1000, clock })
    const first = await limit.permit(never)
    let given = false
    const second = limit.permit(never).then((permit) => {
      given = true
      return permit
    })
    await clock.sleep(10_000, never)
    expect(given).toBe(false)
    first.end()
    expect((await second).take()).toBe(true)
    expect(clock.monotonicMs()).toBe(10_000)
  })

  it('counts nothing for a permit that is released without being taken', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 1, clock })
    const unused = await limit.permit(never)
    unused.end()
    expect((await limit.permit(never)).take()).toBe(true)
    expect(clock.monotonicMs()).toBe(0)
  })
})

describe('a pause', () => {
  it('delays waits that had begun, and is never shortened by another', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 1, clock })
    await takeAll(limit, clock, 1)
    const times = takeAll(limit, clock, 1)
    limit.pauseUntil(5_000)
    limit.pauseUntil(3_000)
    expect(await times).toEqual([5_000])
  })

  it('leaves a rate that is a little lower each time, by a tenth at most', async () => {
    const clock = fakeClock()
    const limit = rateLimit({ requestsPerSecond: 1, clock })
    const paces: number[] = []
    for (let pause = 0; pause < 10; pause++) {
      const [, second, third] = await takeAll(limit, clock, 3)
      paces.push(Math.round(third! - second!))
      limit.pauseUntil(clock.monotonicMs() + 10_000)
      limit.slowDown(clock.monotonicMs())
    }
    expect(paces.slice(0, 3)).toEqual([1013, 1033, 1054])
    expect(paces.at(-1)).toBe(1100)
  })
})

it('a wait for a permit ends with the signal’s reason, and the others still get their permits in order', async () => {
  const clock = fakeClock()
  const limit = rateLimit({ requestsPerSecond: 1, clock })
  const holder = await limit.permit(never)
  const controller = new AbortController()
  const leaver = limit.permit(controller.signal)
  const order: string[] = []
  const behind = limit.permit(never).then((permit) => {
    order.push('behind')
    permit.take()
  })
  controller.abort(new Error('enough'))
  await expect(leaver).rejects.toThrow('enough')
  order.push('left')
  await clock.sleep(1, never)
  order.push('taken')
  holder.take()
  await behind
  expect(order).toEqual(['left', 'taken', 'behind'])
})
