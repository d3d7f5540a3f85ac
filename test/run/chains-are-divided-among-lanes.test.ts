import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type NamedQuery, nameQuery, type Order, type Window, WindowRun } from '../../src/core/index.ts'
import type { PlannedChain } from '../../src/plan/index.ts'
import { ChainQueue } from '../../src/run/chains/chain-queue.ts'
import { cases } from '../support/thorough.ts'

type NewChain = Extract<PlannedChain, { kind: 'new' }>

function query(name: string): NamedQuery {
  return nameQuery({ type: 'domain', fqdn: name }, name)
}

/** A chain over so many windows, each a second long; none: over no windows at all. */
function fresh(name: string, count: number, order: Order = 'asc'): NewChain {
  const windows = Array.from({ length: count }, (_, i): Window => ({ from: i * 1e6, until: (i + 1) * 1e6 }))
  return { kind: 'new', query: query(name), windows: WindowRun.of(order, count === 0 ? [null] : windows) }
}

function begun(name: string): PlannedChain {
  return { kind: 'begun', query: query(name), chain: 7, wanted: 9, keep: null }
}

const ALWAYS = (): boolean => true

/** What a lane is given, in short: the query, and of its windows the seconds at which they begin. */
function told(chain: PlannedChain | null): string | null {
  if (chain === null) return null
  const { fqdn } = chain.query as { fqdn: string }
  if (chain.kind === 'begun') return `${fqdn} begun`
  const { windows } = chain
  const seconds = Array.from({ length: windows.count }, (_, place) => (windows.at(place)?.from ?? 0) / 1e6)
  return `${fqdn} ${seconds.join('')}`
}

/** What lanes are given that come for work when so many are free, one after the other. */
function handedOut(queue: ChainQueue, ...free: readonly number[]): readonly (string | null)[] {
  return free.map((lanes) => told(queue.next(lanes)))
}

describe('chains', () => {
  it('are handed out whole and in their order as long as there is one for every lane', () => {
    const chains = ['a', 'b', 'c', 'd', 'e'].map((name) => fresh(name, 3))
    const queue = new ChainQueue(chains, 3, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 012', 'b 012', 'c 012'])
    // All of them, also when every lane is free again.
    expect(queue.next(1)).toBe(chains[3])
  })

  it('are not taken from the plan before they are needed', () => {
    let taken = 0
    function* plan(): Generator<PlannedChain> {
      for (; taken < 1_000_000; ) yield fresh(`q${taken++}`, 1)
    }
    const queue = new ChainQueue(plan(), 4, ALWAYS)
    expect(taken).toBe(0)
    for (let lane = 0; lane < 50; lane++) queue.next(1)
    expect(taken).toBeLessThanOrEqual(50 + 4)
  })

  it('are none when all are handed out', () => {
    const queue = new ChainQueue([fresh('a', 1)], 2, ALWAYS)
    expect(handedOut(queue, 2, 1, 2)).toEqual(['a 0', null, null])
  })
})

describe('the last chains', () => {
  it('one alone is divided among all lanes, in parts that are as long as can be', () => {
    const queue = new ChainQueue([fresh('a', 10)], 4, ALWAYS)
    expect(handedOut(queue, 4, 3, 2, 1, 4)).toEqual(['a 012', 'a 34', 'a 567', 'a 89', null])
  })

  it('goes backwards where the chain does', () => {
    const queue = new ChainQueue([fresh('a', 6, 'desc')], 3, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 54', 'a 32', 'a 10'])
  })

  it('are divided no further than into single windows', () => {
    const queue = new ChainQueue([fresh('a', 2)], 8, ALWAYS)
    expect(handedOut(queue, 8, 7, 6)).toEqual(['a 0', 'a 1', null])
  })

  it('are shared out: two among four lanes are two parts each', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 4)], 4, ALWAYS)
    expect(handedOut(queue, 4, 3, 2, 1, 4)).toEqual(['a 01', 'a 23', 'b 01', 'b 23', null])
  })

  it('are divided among lanes that are free or will be soon, not among those that have just begun', () => {
    // One lane asks; two others are far along their chains, and one has only begun.
    const queue = new ChainQueue([fresh('a', 6)], 4, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 01', 'a 23', 'a 45'])
    const alone = new ChainQueue([fresh('a', 6)], 4, ALWAYS)
    expect(handedOut(alone, 1)).toEqual(['a 012345'])
  })

  it('stay whole where there are more of them than half the lanes that are free', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 4)], 4, ALWAYS)
    expect(handedOut(queue, 3)).toEqual(['a 0123'])
  })

  it('that cannot be divided leave their lanes to the others', () => {
    const chains = [fresh('none', 0), begun('old'), fresh('one', 1), fresh('a', 6)]
    const queue = new ChainQueue(chains, 4, ALWAYS)
    // All lanes are free all the time: the chains end at once.
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4, 4, 4)).toEqual([
      ...['none 0', 'old begun', 'one 0'],
      ...['a 01', 'a 2', 'a 34', 'a 5'],
      null,
    ])
  })

  it('are not divided where that is not worth a search', () => {
    const asked: string[] = []
    const queue = new ChainQueue([fresh('small', 4), fresh('large', 4)], 4, (query, windows) => {
      asked.push(`${query.name} ${windows.count}`)
      return query.name === 'domain.large'
    })
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4)).toEqual([
      'small 0123',
      ...['large 0', 'large 1', 'large 2', 'large 3'],
      null,
    ])
    expect(asked).toEqual(['domain.small 4', 'domain.large 4'])
  })

  it('are divided once each, however many lanes are free when a part is handed out', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 8)], 4, ALWAYS)
    // All lanes are free each time. Two parts of the first leave two divisions of three for the second.
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4)).toEqual(['a 01', 'a 23', 'b 012', 'b 34', 'b 567', null])
  })

  it('are divided so often that there is a part for each lane, and no more in the whole run', () => {
    const queue = new ChainQueue([fresh('a', 9), fresh('b', 9), fresh('c', 9)], 3, ALWAYS)
    // All lanes are free each time: every chain ends at once.
    const handed = handedOut(queue, ...Array.from({ length: 9 }, () => 3))
    expect(handed).toEqual(['a 012345678', 'b 012345678', 'c 012', 'c 345', 'c 678', null, null, null, null])
    queue.add(fresh('d', 9))
    expect(handedOut(queue, 3)).toEqual(['d 012345678'])
  })
})

describe('what is left of a chain that failed', () => {
  it('comes before all others, and is never divided', () => {
    const queue = new ChainQueue([fresh('a', 8), fresh('b', 8)], 4, ALWAYS)
    expect(handedOut(queue, 1)).toEqual(['a 01234567'])
    const left = fresh('a', 3)
    const old = begun('a')
    queue.add(left)
    queue.add(old)
    expect(queue.next(4)).toBe(old)
    expect(queue.next(4)).toBe(left)
    expect(handedOut(queue, 4, 3, 2, 1, 4)).toEqual(['b 01', 'b 23', 'b 45', 'b 67', null])
  })

  it('is handed out also after all others are', () => {
    const queue = new ChainQueue([], 4, ALWAYS)
    expect(queue.next(4)).toBeNull()
    queue.add(fresh('a', 3))
    expect(handedOut(queue, 4, 4)).toEqual(['a 012', null])
  })
})

it('whatever the plan and the lanes, every window is handed out once, with few divisions', () => {
  const chain = fc.oneof(
    fc.record({ count: fc.nat(12), order: fc.constantFrom<Order>('asc', 'desc') }),
    fc.constant('begun' as const),
  )
  const step = fc.record({ free: fc.nat(), fails: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(chain, { maxLength: 12 }),
      fc.integer({ min: 1, max: 8 }),
      fc.array(step, { minLength: 60, maxLength: 60 }),
      fc.func(fc.boolean()),
      (plan, lanes, steps, worth) => {
        const chains = plan.map((each, i) =>
          each === 'begun' ? begun(`q${i}`) : fresh(`q${i}`, each.count, each.order),
        )
        const isWorth = (query: NamedQuery): boolean => worth(query.name)
        const queue = new ChainQueue(chains, lanes, isWorth)
        const handed = new Map<string, string>()
        const leftovers = new Set<PlannedChain>()
        let given = 0
        let outstanding = chains.length
        for (const { free, fails } of steps) {
          const lanesFree = 1 + (free % lanes)
          const next = queue.next(lanesFree)
          if (next === null) break
          given++
          const { name } = next.query
          const original = chains.find((chain) => chain.query.name === name)!
          if (leftovers.has(next)) continue
          const isWhole = next === original
          if (original.kind === 'begun' || !isWorth(original.query)) expect(isWhole).toBe(true)
          // One for every lane that is free: nothing is divided.
          if (outstanding >= lanesFree && !handed.has(name)) expect(isWhole).toBe(true)
          if (!handed.has(name)) outstanding--
          handed.set(name, `${handed.get(name) ?? ''}${told(next)?.split(' ')[1]},`)
          if (fails && next.kind === 'new' && next.windows.count > 1) {
            const left = { ...next, windows: next.windows.part(1, next.windows.count) }
            queue.add(left)
            leftovers.add(left)
          }
        }
        expect(queue.next(1)).toBeNull()
        expect(given - leftovers.size - chains.length).toBeLessThanOrEqual(lanes - 1)
        for (const chain of chains) {
          const parts = handed.get(chain.query.name)?.split(',').join('')
          expect(parts).toBe(told(chain)?.split(' ')[1])
        }
      },
    ),
    { numRuns: cases(1000, 250) },
  )
})
