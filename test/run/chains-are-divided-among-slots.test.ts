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

/** A chain in short: the query, and the seconds at which its windows begin. */
function inShort(chain: PlannedChain | null): string | null {
  if (chain === null) return null
  const { fqdn } = chain.query as { fqdn: string }
  if (chain.kind === 'begun') return `${fqdn} begun`
  const { windows } = chain
  const seconds = Array.from({ length: windows.count }, (_, index) => (windows.at(index)?.from ?? 0) / 1e6)
  return `${fqdn} ${seconds.join('')}`
}

/** The chains that slots receive, one after the other, when so many slots are free. */
function handedOut(queue: ChainQueue, ...free: readonly number[]): readonly (string | null)[] {
  return free.map((slots) => inShort(queue.next(slots)))
}

describe('chains', () => {
  it('are handed out whole and in order while there is one for every slot', () => {
    const chains = ['a', 'b', 'c', 'd', 'e'].map((name) => fresh(name, 3))
    const queue = new ChainQueue(chains, 3, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 012', 'b 012', 'c 012'])
    // All of them, also when every slot is free again.
    expect(queue.next(1)).toBe(chains[3])
  })

  it('are not taken from the plan before they are needed', () => {
    let taken = 0
    function* plan(): Generator<PlannedChain> {
      for (; taken < 1_000_000; ) yield fresh(`q${taken++}`, 1)
    }
    const queue = new ChainQueue(plan(), 4, ALWAYS)
    expect(taken).toBe(0)
    for (let slot = 0; slot < 50; slot++) queue.next(1)
    expect(taken).toBeLessThanOrEqual(50 + 4)
  })

  it('are none when all are handed out', () => {
    const queue = new ChainQueue([fresh('a', 1)], 2, ALWAYS)
    expect(handedOut(queue, 2, 1, 2)).toEqual(['a 0', null, null])
  })
})

describe('the last chains', () => {
  it('one alone is divided among all slots, in parts that are as long as possible', () => {
    const queue = new ChainQueue([fresh('a', 10)], 4, ALWAYS)
    expect(handedOut(queue, 4, 3, 2, 1, 4)).toEqual(['a 012', 'a 34', 'a 567', 'a 89', null])
  })

  it('is divided in its own order, if that is backwards too', () => {
    const queue = new ChainQueue([fresh('a', 6, 'desc')], 3, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 54', 'a 32', 'a 10'])
  })

  it('are divided no further than into single windows', () => {
    const queue = new ChainQueue([fresh('a', 2)], 8, ALWAYS)
    expect(handedOut(queue, 8, 7, 6)).toEqual(['a 0', 'a 1', null])
  })

  it('are divided equally: two among four slots are two parts each', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 4)], 4, ALWAYS)
    expect(handedOut(queue, 4, 3, 2, 1, 4)).toEqual(['a 01', 'a 23', 'b 01', 'b 23', null])
  })

  it('are divided among slots that are free or will be soon, not among those that have just begun', () => {
    // One slot requests work; two others are far along their chains, and one has only begun.
    const queue = new ChainQueue([fresh('a', 6)], 4, ALWAYS)
    expect(handedOut(queue, 3, 2, 1)).toEqual(['a 01', 'a 23', 'a 45'])
    const alone = new ChainQueue([fresh('a', 6)], 4, ALWAYS)
    expect(handedOut(alone, 1)).toEqual(['a 012345'])
  })

  it('stay whole if there are more of them than half the free slots', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 4)], 4, ALWAYS)
    expect(handedOut(queue, 3)).toEqual(['a 0123'])
  })

  it('that cannot be divided leave their slots to the others', () => {
    const chains = [fresh('none', 0), begun('old'), fresh('one', 1), fresh('a', 6)]
    const queue = new ChainQueue(chains, 4, ALWAYS)
    // All slots are free all the time: the chains end at once.
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4, 4, 4)).toEqual([
      ...['none 0', 'old begun', 'one 0'],
      ...['a 01', 'a 2', 'a 34', 'a 5'],
      null,
    ])
  })

  it('are not divided if that is not worth a search', () => {
    const considered: string[] = []
    const queue = new ChainQueue([fresh('small', 4), fresh('large', 4)], 4, (query, windows) => {
      considered.push(`${query.name} ${windows.count}`)
      return query.name === 'domain.large'
    })
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4)).toEqual([
      'small 0123',
      ...['large 0', 'large 1', 'large 2', 'large 3'],
      null,
    ])
    expect(considered).toEqual(['domain.small 4', 'domain.large 4'])
  })

  it('are divided once each, however many slots are free when a part is handed out', () => {
    const queue = new ChainQueue([fresh('a', 4), fresh('b', 8)], 4, ALWAYS)
    // All slots are free each time. Two parts of the first leave two divisions of three for the second.
    expect(handedOut(queue, 4, 4, 4, 4, 4, 4)).toEqual(['a 01', 'a 23', 'b 012', 'b 34', 'b 567', null])
  })

  it('are divided so often that there is a part for each slot, and no more in the whole run', () => {
    const queue = new ChainQueue([fresh('a', 9), fresh('b', 9), fresh('c', 9)], 3, ALWAYS)
    // All slots are free each time: every chain ends at once.
    const handed = handedOut(queue, ...Array.from({ length: 9 }, () => 3))
    expect(handed).toEqual(['a 012345678', 'b 012345678', 'c 012', 'c 345', 'c 678', null, null, null, null])
    queue.add(fresh('d', 9))
    expect(handedOut(queue, 3)).toEqual(['d 012345678'])
  })
})

describe('the rest of a chain that failed', () => {
  it('precedes all other chains, and is never divided', () => {
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

it('for every plan and number of slots, each window is handed out once, with few divisions', () => {
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
      (plan, slots, steps, worth) => {
        const chains = plan.map((each, i) =>
          each === 'begun' ? begun(`q${i}`) : fresh(`q${i}`, each.count, each.order),
        )
        const isWorth = (query: NamedQuery): boolean => worth(query.name)
        const queue = new ChainQueue(chains, slots, isWorth)
        const handed = new Map<string, string>()
        const leftovers = new Set<PlannedChain>()
        let given = 0
        let outstanding = chains.length
        for (const { free, fails } of steps) {
          const slotsFree = 1 + (free % slots)
          const next = queue.next(slotsFree)
          if (next === null) break
          given++
          const { name } = next.query
          const original = chains.find((chain) => chain.query.name === name)!
          if (leftovers.has(next)) continue
          const isWhole = next === original
          if (original.kind === 'begun' || !isWorth(original.query)) expect(isWhole).toBe(true)
          // One for every free slot: nothing is divided.
          if (outstanding >= slotsFree && !handed.has(name)) expect(isWhole).toBe(true)
          if (!handed.has(name)) outstanding--
          handed.set(name, `${handed.get(name) ?? ''}${inShort(next)?.split(' ')[1]},`)
          if (fails && next.kind === 'new' && next.windows.count > 1) {
            const left = { ...next, windows: next.windows.part(1, next.windows.count) }
            queue.add(left)
            leftovers.add(left)
          }
        }
        expect(queue.next(1)).toBeNull()
        expect(given - leftovers.size - chains.length).toBeLessThanOrEqual(slots - 1)
        for (const chain of chains) {
          const parts = handed.get(chain.query.name)?.split(',').join('')
          expect(parts).toBe(inShort(chain)?.split(' ')[1])
        }
      },
    ),
    { numRuns: cases(1000, 250) },
  )
})
