import { describe, expect, it } from 'vitest'
import { type PartitionBy, WindowRun } from '../../../src/core/index.ts'
import { planPartitions } from '../../../src/pipeline/index.ts'
import type { BegunQueries } from '../../../src/pipeline/plan/plan.ts'
import { at, begunOf, domain, NOW, pipelineOf, type Wanted } from './pipeline.ts'

const windows = {
  from: at('2024-01-01'),
  until: at('2024-03-01'),
  every: { unit: 'month' as const },
  lagMs: 0,
}
const queries = [domain('b.com'), domain('a.com')]

const JAN = '2024-01-01..2024-02-01'
const FEB = '2024-02-01..2024-03-01'

/** A chain that an earlier run has begun: in the one partition of its query. */
const BEGUN = { chain: 7, windows: new WindowRun('asc', null), watermark: 0 }

function expectWork(wanted: Wanted, begun: BegunQueries, work: { partitions: string[]; chains: string[] }) {
  const plan = planPartitions(pipelineOf({ queries, ...wanted }), NOW, begun)
  const chains = [...plan.chains()].map((chain) =>
    chain.kind === 'new'
      ? `${chain.query.name}: ${chain.windows.names.join(' ')}`
      : `#${chain.chain}: ${chain.wanted}, keep ${chain.keep}`,
  )
  expect({ partitions: [...plan.partitions()].map(({ key }) => key), chains }).toEqual(work)
}

describe('the order of work', () => {
  it.each<[PartitionBy[]]>([[[]], [['query']], [['window']], [['query', 'window']], [['window', 'query']]])(
    'is query by query, in their order, for partition_by %j',
    (partitionBy) => {
      expectWork({ windows, partitionBy }, () => null, {
        partitions: ['b', 'a'].flatMap((name) => [JAN, FEB].map((window) => `domain.${name}.com/${window}`)),
        chains: [`domain.b.com: ${JAN} ${FEB}`, `domain.a.com: ${JAN} ${FEB}`],
      })
      expectWork({ partitionBy }, () => null, {
        partitions: ['domain.b.com/all', 'domain.a.com/all'],
        chains: ['domain.b.com: all', 'domain.a.com: all'],
      })
    },
  )

  it.each([
    ['without one that is done', begunOf([{ window: null, done: true }]), []],
    ['with a chain that has begun', begunOf([], [BEGUN]), ['#7: 1, keep null']],
    ['and a page', begunOf([{ window: null, done: false }], [BEGUN]), ['#7: 1, keep null']],
  ])('is a chain for each query without windows, %s', (_, begun, ofFirst) => {
    expectWork({}, (name) => (name === 'domain.b.com' ? begun : null), {
      partitions: ['domain.b.com/all', 'domain.a.com/all'],
      chains: [...ofFirst, 'domain.a.com: all'],
    })
  })

  it('stays query by query if one has windows of its own', () => {
    const begun = begunOf([
      { window: { from: at('2024-01-01'), until: at('2024-01-10') }, done: true },
      { window: { from: at('2024-01-20'), until: at('2024-02-10') }, done: false },
    ])
    expectWork({ windows, partitionBy: ['window'] }, (name) => (name === 'domain.a.com' ? begun : null), {
      partitions: [
        `domain.b.com/${JAN}`,
        `domain.b.com/${FEB}`,
        'domain.a.com/2024-01-01..2024-01-10',
        'domain.a.com/2024-01-10..2024-01-20',
        'domain.a.com/2024-01-20..2024-02-10',
        'domain.a.com/2024-02-10..2024-03-01',
      ],
      chains: [
        `domain.b.com: ${JAN} ${FEB}`,
        'domain.a.com: 2024-01-10..2024-01-20 2024-01-20..2024-02-10 2024-02-10..2024-03-01',
      ],
    })
  })

  it('is empty while no window is ripe, whatever has begun', () => {
    const ahead = { ...windows, from: at('2031-01-01'), until: 'now' as const }
    const begun = begunOf([{ window: { from: at('2024-01-01'), until: at('2024-02-01') }, done: false }])
    expectWork({ windows: ahead }, () => begun, { partitions: [], chains: [] })
  })
})
