import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readCheckpoint } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { losingPowerAfter } from '../support/lost-power.ts'

const afterLostPower = losingPowerAfter(join(import.meta.dirname, 'lose-power.mjs'))

it.each([
  ['checkpoint that has begun', []],
  ['commit', ['a', 'b', 'c']],
  ['saved checkpoint', ['a', 'b', 'c']],
])('a %s is there when the power is lost', async (what, names) => {
  const { root } = afterLostPower(what)
  const state = await readCheckpoint(storeAt(root))
  expect([...(state?.queries.keys() ?? ['nothing'])]).toEqual(names)
})
