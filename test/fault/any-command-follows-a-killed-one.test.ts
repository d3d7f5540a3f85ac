import { expect, test } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type ChangesWorld,
  carriedOut,
  expectNamedFilesToBeThere,
  expectSettled,
  FOLLOWERS,
  type Follower,
  LAYOUTS,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'

const ALL = Object.keys(CHANGES) as Change[]
/** A run is killed elsewhere, and a redo of a part is one of all. */
const FIRST = THOROUGH ? ALL : ALL.filter((change) => change !== 'first run' && change !== 'redo')
const NEXT = Object.keys(FOLLOWERS) as Follower[]
const worldOf = worldsOfFile()

/** Most of what matters is at the end. */
const PARTS = THOROUGH ? [0.3, 0.6, 0.85, 0.95] : [0.85]

/** In `npm test` each sort of first command is killed once, and another follows. */
test.each(some(Object.keys(LAYOUTS) as Layout[], 1))(
  'a command that is killed, another, then a plain run leave nothing half done: %s',
  async (layout) => {
    const world = await worldOf(layout)
    let kills = 0
    for (const [index, first] of FIRST.entries()) {
      const calls = await world.callsOf(first)
      for (const [turn, part] of PARTS.entries()) {
        const number = Math.ceil(calls.length * part)
        const next = NEXT[(index + turn + 1) % NEXT.length]!
        kills += await killed(world, first, `dead:${number}`, next)
      }
    }
    expect(kills).toBeGreaterThan(THOROUGH ? 4 : 2)
  },
)

test.each([
  ['forget', 'its entry is durable', /^write _state\/log\//],
  ['prune', 'the manifest no longer names what it removes', /^rename _manifest\.json/],
] as const)('a %s that is killed once %s is carried out by any other command', async (change, _, last) => {
  const world = await worldOf('partition_by: [query]')
  const calls = await world.callsOf(change)
  const done = calls.findIndex((call) => last.test(call))
  expect(done).toBeGreaterThan(0)
  // It is written, or renamed; then its file is fsynced, or its folder.
  const fault = `dead:${done + 3}`
  for (const next of THOROUGH ? NEXT : (['first run'] as const))
    await killed(world, change, fault, next, true)
})

async function killed(
  world: ChangesWorld,
  first: Change,
  fault: string,
  next: Follower,
  isDurable = false,
): Promise<number> {
  return world.onCopy(async (copy) => {
    const about = `${first} ${fault}, then ${next}`
    const ended = await copy.command(CHANGES[first], fault)
    await expectNamedFilesToBeThere(copy, about)
    const followed = await carriedOut(copy, FOLLOWERS[next], about)
    expect(followed.code, `${about}\n${followed.stderr}`).toBe(0)
    await expectSettled(copy, world.outcomes(first, next).slice(isDurable ? 1 : 0), about)
    return ended.code === 0 ? 0 : 1
  }, first)
}
