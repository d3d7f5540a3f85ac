import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { invalidationOf, redoEntry } from '../../src/data-set/redo/invalidate.ts'
import { anError } from '../disk/errors.ts'
import { keyOf, responsesOf, World } from './shards-world.ts'

const FOLDER = 'credentials'
const SHARD = `${FOLDER}/part-00000.csv`

const DAMAGES = [
  [
    'gets a flipped bit',
    (path: string) => {
      const bytes = readFileSync(path)
      bytes[bytes.length >> 1]! ^= 1
      writeFileSync(path, bytes)
    },
  ],
  ['is cut', (path: string) => truncateSync(path, 9)],
] as const

function newWorld(): World {
  return new World([responsesOf(FOLDER, 3, 4)], { rowGroupRows: 3, shardRows: 100, owned: false })
}

/** Damages a sealed shard after the last look at it, right before it gets its final name. @param then right after */
function damagedLast(world: World, damage: (path: string) => void, then: typeof damage = () => {}) {
  return (own: OwnedStore): OwnedStore => ({
    ...own,
    async publish(from, to) {
      const isSealed = from.startsWith('_state/')
      if (isSealed) damage(join(world.root, from))
      await own.publish(from, to)
      if (isSealed) then(join(world.root, from))
    },
  })
}

describe.each(DAMAGES)('a sealed shard that %s right before it gets its final name', (_, damage) => {
  it('ends the run, has its former name again, and is refused by the next run', async () => {
    const world = newWorld()
    await world.open(damagedLast(world, damage))
    await expect(world.finish()).rejects.toEqual(anError('damaged'))
    expect(existsSync(join(world.root, SHARD))).toBe(false)
    expect(world.published).toEqual([])
    await world.close()
    // By the name that it has, or, where its length shows the damage, the one that it should have.
    const where = expect.stringMatching(/^(?:_state\/sealed\/0\.\w+|credentials\/part-00000\.csv)$/)
    await expect(world.open()).rejects.toMatchObject({ kind: 'damaged', where })
  })

  it('ends a run that gives it the name that a crash has kept from it', async () => {
    const world = newWorld()
    await world.open((own) => ({ ...own, publish: () => Promise.reject(new Error('a crash')) }))
    await expect(world.finish()).rejects.toThrow('a crash')
    await world.close()
    await expect(world.open(damagedLast(world, damage))).rejects.toEqual(anError('damaged'))
    expect(existsSync(join(world.root, SHARD))).toBe(false)
  })

  it('does not replace what was exported before', async () => {
    const world = newWorld()
    await world.open()
    await world.finish()
    await world.open()
    const { state } = world.journal!
    const all = { partitions: [keyOf(0, 0)], shards: new Set<number>() }
    await world.journal!.append([redoEntry(invalidationOf(state, all))])
    await world.close()
    const before = world.files()
    await world.open(damagedLast(world, damage))
    await expect(world.finish()).rejects.toEqual(anError('damaged'))
    expect(world.files()).toEqual(before)
  })

  it('has its former name again also where something else has taken that', async () => {
    const world = newWorld()
    await world.open(
      damagedLast(world, damage, (path) => writeFileSync(path, 'what a late write has created')),
    )
    await expect(world.finish()).rejects.toEqual(anError('damaged'))
    expect(existsSync(join(world.root, SHARD))).toBe(false)
  })
})

it('a sealed shard that vanishes right before it gets its final name ends the run', async () => {
  const world = newWorld()
  await world.open(damagedLast(world, (path) => rmSync(path)))
  await expect(world.finish()).rejects.toEqual(anError('damaged'))
  await world.close()
  await expect(world.open()).rejects.toEqual(anError('damaged', SHARD))
})
