import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases, seedOf } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type Copy,
  type Ended,
  expectNamedFilesToBeThere,
  expectSettled,
  FOLLOWERS,
  type Follower,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'

const worldOf = worldsOfFile()

/** What somebody removes. */
const LOSSES = ['', '_state', '_state/checkpoint.jsonl', '_state/log', '_manifest.json'] as const

const history = fc.record({
  layout: fc.constantFrom<Layout>('partition_by: [query]', 'partition_by: [query, window]', 'with tables'),
  first: fc.constantFrom(...(Object.keys(CHANGES) as Change[]).filter((change) => change !== 'repair')),
  second: fc.constantFrom(...(Object.keys(FOLLOWERS) as Follower[]).filter((change) => change !== 'repair')),
  /** Where each is cut, as a part of its calls; beyond 1: not at all. */
  cuts: fc.tuple(fc.double({ min: 0, max: 1.2, noNaN: true }), fc.double({ min: 0, max: 1.2, noNaN: true })),
  modes: fc.tuple(fc.constantFrom('dead', 'eio'), fc.constantFrom('dead', 'eio')),
  loss: fc.constantFrom(...LOSSES),
  last: fc.constantFrom(
    ['run'],
    ['compact', '--min-shards', '2'],
    ['prune', '--older-than', '1200mo', '--yes'],
  ),
})

test('a command that is cut, a second one that is cut, and lost state: one more command ends it, or names the files and what to do', async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ layout, first, second, cuts, modes, loss, last }) => {
      const world = await worldOf(layout)
      const calls = (await world.callsOf(first)).length
      await world.onCopy(async (copy) => {
        const about = JSON.stringify({ layout, first, second, cuts, modes, loss, last })
        const faults = cuts.map((cut, i) => (cut > 1 ? 'none' : `${modes[i]}:${Math.ceil(calls * cut)}`))
        await copy.command(CHANGES[first]!, faults[0])
        await expectNamedFilesToBeThere(copy, about)
        await copy.command(FOLLOWERS[second]!, faults[1])
        await expectNamedFilesToBeThere(copy, about)
        if (loss !== '') await rm(join(copy.output, loss), { recursive: true, force: true })
        const ended = await copy.command(last)
        const outcomes = [
          ...world.outcomes(first, null),
          ...world.outcomes(first, second),
          ...world.outcomes(second as Change, null),
        ]
        if (ended.code === 0) return expectSettled(copy, outcomes, about)
        await expectRemedy(copy, ended, about)
        // Every row that no command takes away is still there.
        const rows = await rowsOf(copy.output)
        if (first !== 'first run' && second !== 'fresh')
          for (const row of world.others.keys())
            if (outcomes.every((outcome) => outcome.has(row)))
              expect(rows.get(row) ?? 0, about).toBeGreaterThan(0)
      }, first)
    }),
    { numRuns: cases(60), seed: seedOf(66) },
  )
})

/** A refusal says what is there, or is no longer; no mark of success stands beside rows that nothing names. */
async function expectRemedy(copy: Copy, { code, stderr }: Ended, about: string) {
  expect([1, 2], `${about}\n${stderr}`).toContain(code)
  expect(stderr, about).toMatch(/_state|_manifest\.json|credentials\/|--redo|--fresh/)
  await expectNamedFilesToBeThere(copy, about)
}
