import fc from 'fast-check'
import { expect, it } from 'vitest'
import { responseMemory } from '../../src/extract/transport/response-memory.ts'

const MB = 1 << 20
const SHARED = 128 * MB
const SMALL = 256 << 10

it('answers in flight never hold more than 128 MB and one large answer, and each comes to its end', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 16 }), fc.integer({ min: 17, max: 200 })), {
    minLength: 1,
    maxLength: 40,
  })
  const order = fc.infiniteStream(fc.nat())
  fc.assert(
    fc.property(sizes, order, (totals, choices) => {
      const room = responseMemory()
      const answers = totals.map((mb) => ({ share: room.share(), left: mb, held: 0, waits: false }))
      const inFlight = new Set(answers)
      let steps = 0
      while (inFlight.size > 0) {
        // One that can go on always is there: nobody waits for somebody who waits.
        const able = [...inFlight].filter(({ waits }) => !waits)
        expect(able.length).toBeGreaterThan(0)
        expect(++steps).toBeLessThan(10_000)
        const answer = able[choices.next().value! % able.length]!
        if (answer.left === 0) {
          inFlight.delete(answer)
          answer.share.release()
          continue
        }
        const step = (): void => {
          answer.waits = false
          answer.held++
          answer.left--
        }
        const wanted = (answer.held + 1) * MB
        if (answer.share.has(wanted)) step()
        else {
          answer.waits = true
          answer.share.wait(wanted, step)
        }
        const held = [...inFlight].map(({ held }) => held * MB).sort((a, b) => b - a)
        const [largest = 0] = held
        const all = held.reduce((sum, bytes) => sum + bytes, 0)
        expect(all).toBeLessThanOrEqual(SHARED + largest)
      }
    }),
    { numRuns: 30 },
  )
})

it('what is small comes in at once, whoever waits', () => {
  const room = responseMemory()
  const large = room.share()
  let isHolder = false
  large.wait(200 * MB, () => {
    isHolder = true
  })
  expect(isHolder).toBe(true)
  let isAdmitted = false
  const next = room.share()
  next.wait(40 * MB, () => {
    isAdmitted = true
  })
  expect(isAdmitted).toBe(false)
  const error = room.share()
  expect(error.has(SMALL)).toBe(true)
  // It is not let past those who wait beyond that.
  expect(error.has(MB)).toBe(false)
  error.release()
  large.release()
  expect(isAdmitted).toBe(true)
})
