import fc from 'fast-check'
import { expect, it } from 'vitest'
import { responseMemory } from '../../src/http/response-memory.ts'

const MB = 1 << 20
const SHARED = 128 * MB
const SMALL = 256 << 10

it('responses in flight never hold more than 128 MB and one large response, and each completes', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 16 }), fc.integer({ min: 17, max: 200 })), {
    minLength: 1,
    maxLength: 40,
  })
  const order = fc.infiniteStream(fc.nat())
  fc.assert(
    fc.property(sizes, order, (totals, choices) => {
      const room = responseMemory()
      const responses = totals.map((mb) => ({ share: room(), left: mb, held: 0, waits: false }))
      const inFlight = new Set(responses)
      let steps = 0
      while (inFlight.size > 0) {
        // At least one response can always continue, so none waits for another that waits.
        const able = [...inFlight].filter(({ waits }) => !waits)
        expect(able.length).toBeGreaterThan(0)
        expect(++steps).toBeLessThan(10_000)
        const response = able[choices.next().value! % able.length]!
        if (response.left === 0) {
          inFlight.delete(response)
          response.share.release()
          continue
        }
        const step = (): void => {
          response.waits = false
          response.held++
          response.left--
        }
        const wanted = (response.held + 1) * MB
        if (response.share.has(wanted)) step()
        else {
          response.waits = true
          response.share.wait(wanted, step)
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

it('a small response is admitted at once, whoever waits', () => {
  const room = responseMemory()
  const large = room()
  let isHolder = false
  large.wait(200 * MB, () => {
    isHolder = true
  })
  expect(isHolder).toBe(true)
  let isAdmitted = false
  const next = room()
  next.wait(40 * MB, () => {
    isAdmitted = true
  })
  expect(isAdmitted).toBe(false)
  const error = room()
  expect(error.has(SMALL)).toBe(true)
  // Beyond that, it waits behind the others.
  expect(error.has(MB)).toBe(false)
  error.release()
  large.release()
  expect(isAdmitted).toBe(true)
})
