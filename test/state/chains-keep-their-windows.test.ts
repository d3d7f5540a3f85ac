import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WindowRun } from '../../src/core/index.ts'
import { chainFromEntry } from '../../src/state/checkpoint/folded-chain.ts'
import { chainEntry } from '../../src/state/index.ts'

const QUERY = 'domain.acme.com'

describe('the windows of a chain', () => {
  const instant = fc.integer({ min: -8_000_000_000_000_000, max: 8_000_000_000_000_000 })
  const bounds = fc
    .tuple(
      instant,
      fc.array(fc.tuple(fc.integer({ min: 1, max: 1_000_000_000_000 }), fc.integer({ min: 1, max: 5 }))),
    )
    .map(([from, spans]) => {
      const all = [from]
      for (const [span, times] of spans) for (let i = 0; i < times; i++) all.push(all.at(-1)! + span)
      return all
    })

  it('are read back from its line unchanged, whatever their lengths', () => {
    fc.assert(
      fc.property(bounds, fc.constantFrom('asc' as const, 'desc' as const), (bounds, order) => {
        fc.pre(bounds.length > 1)
        const windows = new WindowRun(order, Float64Array.from(bounds))
        const line = JSON.parse(JSON.stringify(chainEntry(3, QUERY, windows)))
        const record = chainFromEntry(line)
        expect(record.windows).toEqual(windows)
        expect(record).toMatchObject({
          chain: 3,
          query: QUERY,
          watermark: 0,
          next: null,
          requested: windows.range,
        })
      }),
    )
  })
})
