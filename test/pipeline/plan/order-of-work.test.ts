import { describe, expect, it } from 'vitest'
import type { PartitionBy } from '../../../src/core/index.ts'
import { planPartitions } from '../../../src/pipeline/index.ts'
import { at, begunOf, domain, NOW, pipelineOf } from './pipeline.ts'

const windows = {
  from: at('2024-01-01'),
  until: at('2024-03-01'),
  every: { unit: 'month' as const },
  lagMs: 0,
}
const queries = [domain('b.com'), domain('a.com')]
const none = () => null

const JAN = '2024-01-01..2024-02-01'
const FEB = '2024-02-01..2024-03-01'

describe('the order of work', () => {
  it.each<[PartitionBy[]]>([[[]], [['query']], [['window']], [['query', 'window']], [['window', 'query']]])(
    'is query by query, in their order, for partition_by %j',
    (partitionBy) => {
      const plan = planPartitions(pipelineOf({ queries, windows, partitionBy }), NOW, none)
      expect([...plan.partitions()].map(({ key }) => key)).toEqual(
        ['b', 'a'].flatMap((name) => [JAN, FEB].map((window) => `domain.${name}.com/${window}`)),
      )
    },
  )

  it('stays query by query if one has windows of its own', () => {
    const begun = begunOf([
      { window: { from: at('2024-01-01'), until: at('2024-01-10') }, done: true },
      { window: { from: at('2024-01-20'), until: at('2024-02-10') }, done: false },
    ])
    const lookUp = (name: string) => (name === 'domain.a.com' ? begun : null)
    const plan = planPartitions(pipelineOf({ queries, windows, partitionBy: ['window'] }), NOW, lookUp)
    expect([...plan.partitions()].map(({ key }) => key)).toEqual([
      `domain.b.com/${JAN}`,
      `domain.b.com/${FEB}`,
      'domain.a.com/2024-01-01..2024-01-10',
      'domain.a.com/2024-01-10..2024-01-20',
      'domain.a.com/2024-01-20..2024-02-10',
      'domain.a.com/2024-02-10..2024-03-01',
    ])
  })

  it.each<[PartitionBy[]]>([[['query', 'window']], [['window']]])(
    'is one partition for each query without windows, for partition_by %j',
    (partitionBy) => {
      const plan = planPartitions(pipelineOf({ queries, partitionBy }), NOW, () =>
        begunOf([{ window: null, done: true }]),
      )
      expect([...plan.partitions()]).toEqual([
        { key: 'domain.b.com/all', query: domain('b.com'), window: null },
        { key: 'domain.a.com/all', query: domain('a.com'), window: null },
      ])
    },
  )

  it('is empty while no window is ripe, whatever has begun', () => {
    const ahead = { ...windows, from: at('2031-01-01'), until: 'now' as const }
    const plan = planPartitions(pipelineOf({ queries, windows: ahead }), NOW, () =>
      begunOf([{ window: { from: at('2024-01-01'), until: at('2024-02-01') }, done: false }]),
    )
    expect([...plan.partitions()]).toEqual([])
    expect([...plan.chains()]).toEqual([])
  })
})
