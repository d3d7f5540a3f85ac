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
  type Layout,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'

const ALL = Object.keys(CHANGES) as Change[]

/** In a bucket the client waits between the attempts of a call. */
const PLACES: readonly (readonly [Layout, number])[] = [
  ['with tables', THOROUGH ? 24 : 4],
  ...(THOROUGH ? ([['in a bucket', 5]] as const) : []),
]

test.each(PLACES.flatMap(([layout, steps]) => ALL.map((change) => [change, layout, steps] as const)))(
  'any call that fails once during %s, %s: _SUCCESS stands only where no row is missing, and a plain run ends it',
  async (change, layout, steps) => {
    const world = await ChangesWorld.make(layout)
    try {
      const calls = await world.callsOf(change)
      for (let step = 1; step <= steps; step++) {
        const number = Math.ceil((calls.length * step) / (steps + 1))
        await failed(world, change, number)
      }
    } finally {
      await world.close()
    }
  },
  600_000,
)

async function failed(world: ChangesWorld, change: Change, number: number): Promise<void> {
  await world.onCopy(async (copy) => {
    const about = `${change}, call ${number} fails`
    const ended = await copy.command(CHANGES[change], `eio:${number}`)
    await expectNamedFilesToBeThere(copy, about)
    const outcomes = world.outcomes(change, null)
    const isMissing = copy.damaged !== null && !existsSync(join(copy.output, copy.damaged))
    if (existsSync(join(copy.output, '_SUCCESS')) && !isMissing) {
      const rows = await rowsOf(copy.output)
      for (const [row] of outcomes.at(-1)!) expect(rows.get(row), about).toBe(1)
    }
    await expectSettled(copy, ended.code === 0 ? outcomes.slice(-1) : outcomes, about)
  }, change)
}

test.each(['partition_by: [query]', ...(THOROUGH ? (['in a bucket'] as const) : [])] as const)(
  'a shard that cannot be published while the last pages are committed is published by a plain run, without a request: %s',
  async (layout) => {
    const world = await ChangesWorld.make(layout)
    try {
      const calls = await world.callsOf('first run')
      const published = calls.filter((call) => /^(?:link|CopyObject) (?:out\/)?credentials\//.test(call))
      expect(published.length).toBeGreaterThan(2)
      for (const call of THOROUGH ? published : published.slice(-1)) {
        await world.onCopy(async (copy) => {
          const ended = await copy.command(CHANGES['first run'], `stuck:${call}`)
          expect(ended.code, call).toBe(1)
          expect(existsSync(join(copy.output, '_SUCCESS')), call).toBe(false)
          await expectNamedFilesToBeThere(copy, call)
          const all = copy.requests()
          await expectSettled(copy, world.outcomes('first run', null), call)
          if (call === published.at(-1)) expect(copy.requests(), call).toBe(all)
        }, 'first run')
      }
    } finally {
      await world.close()
    }
  },
  300_000,
)
