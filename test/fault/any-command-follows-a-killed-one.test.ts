import { expect, test } from 'vitest'
import { THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  ChangesWorld,
  expectNamedFilesToBeThere,
  expectSettled,
  LAYOUTS,
  type Layout,
} from './changes-world.ts'

const ALL = Object.keys(CHANGES) as Change[]

/** Each pair is tried in the long test; here each first command is killed twice, and another follows each time. */
test.each(Object.keys(LAYOUTS).slice(0, THOROUGH ? 4 : 2) as Layout[])(
  'a command that is killed, another, then a plain run leave nothing half done: %s',
  async (layout) => {
    const world = await ChangesWorld.make(layout)
    let kills = 0
    try {
      for (const [index, first] of ALL.entries()) {
        const calls = await world.callsOf(first)
        // Most of what matters is at the end.
        for (const [turn, part] of [0.6, 0.85].entries()) {
          const number = Math.ceil(calls.length * part)
          const next = ALL[(index + turn + 1) % ALL.length]!
          kills += await killed(world, first, number, next)
        }
      }
    } finally {
      await world.close()
    }
    expect(kills).toBeGreaterThan(4)
  },
  300_000,
)

async function killed(world: ChangesWorld, first: Change, number: number, next: Change): Promise<number> {
  return world.onCopy(async (copy) => {
    const about = `${first} dead at ${number}, then ${next}`
    const ended = await copy.command(CHANGES[first], `dead:${number}`)
    await expectNamedFilesToBeThere(copy.output, about)
    const followed = await copy.command(CHANGES[next])
    expect(followed.code, `${about}\n${followed.stderr}`).toBe(0)
    await expectSettled(copy, world.outcomes([first], [next]), about)
    return ended.code === 0 ? 0 : 1
  })
}
