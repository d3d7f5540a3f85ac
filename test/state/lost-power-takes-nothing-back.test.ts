import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openIdLog, readCheckpoint } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { losingPowerAfter } from '../support/lost-power.ts'

const afterLostPower = losingPowerAfter(join(import.meta.dirname, 'lose-power.mjs'))

it.each([
  ['checkpoint that has begun', []],
  ['committed entry', ['a', 'b', 'c']],
  ['compacted checkpoint', ['a', 'b', 'c']],
])('a %s is there when the power is lost', async (what, names) => {
  const { root } = afterLostPower(what)
  const state = await readCheckpoint(storeAt(root))
  expect([...(state?.queries.keys() ?? ['nothing'])]).toEqual(names)
})

it.each([
  ['page of ids', 2],
  ['page of ids in the other file', 4],
])('a %s is there when the power is lost', async (what, pages) => {
  const { root, said } = afterLostPower(what)
  const log = await openIdLog(storeAt(root), 0, JSON.parse(said))
  const last = log?.recent.at(-1)
  expect(last?.rows[0]).toBe(10 * (pages - 1))
  await log?.close()
})
