import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  ChangesWorld,
  expectNamedFilesToBeThere,
  expectSettled,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'

/** Every call is tried in the long test. */
const STEPS = THOROUGH ? 40 : 4

test.each(Object.keys(CHANGES) as Change[])(
  'any call that fails once during %s: _SUCCESS stands only where no row is missing, and a plain run ends it',
  async (change) => {
    const world = await ChangesWorld.make('with tables')
    try {
      const calls = await world.callsOf(change)
      for (let step = 1; step <= STEPS; step++) {
        const number = Math.ceil((calls.length * step) / (STEPS + 1))
        await failed(world, change, number)
      }
    } finally {
      await world.close()
    }
  },
  300_000,
)

async function failed(world: ChangesWorld, change: Change, number: number): Promise<void> {
  await world.onCopy(async (copy) => {
    const about = `${change}, call ${number} fails`
    const ended = await copy.command(CHANGES[change], `eio:${number}`)
    await expectNamedFilesToBeThere(copy.output, about)
    const outcomes = world.outcomes([change], [])
    if (existsSync(join(copy.output, '_SUCCESS'))) {
      const rows = await rowsOf(copy.output)
      const fewest = outcomes.at(-1)!
      for (const [row] of fewest) expect(rows.get(row), about).toBe(1)
    }
    if (ended.code === 0) await expectSettled(copy, outcomes.slice(-1), about)
    else await expectSettled(copy, outcomes, about)
  })
}
