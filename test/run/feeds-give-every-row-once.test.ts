import { expect, test } from 'vitest'
import { feedWorld, sorted } from './feed-world.ts'

test.for([
  ['the tenant', '', null],
  ['an identifier, newest first', 'identifiers: [2]', 2],
  ['an identifier, oldest first', 'identifiers: [2]', 2],
] as const)('every run adds what is new of %s', async ([name, extract, identifier]) => {
  const identifierOrder = name.endsWith('oldest first') ? 'asc' : 'desc'
  const world = await feedWorld(extract, { lateRate: 0.1, identifierOrder })
  const folder = `query=feed.${identifier ?? 'tenant'}`
  for (const day of [0, 3, 3, 40, 41, 200, 400, 400]) {
    world.day = day
    const before = world.ids()[folder]?.length ?? 0
    const summary = await world.run()
    expect(summary.error).toBeNull()
    expect(summary.status).toBe('complete')
    expect(sorted(world.ids()[folder])).toEqual(sorted(world.expected(identifier)))
    expect(summary.rows).toBe(world.expected(identifier).length - before)
    expect(world.isComplete()).toBe(true)
  }
})
