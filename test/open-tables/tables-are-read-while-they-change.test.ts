import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { pruneDataSet } from '../support/rooms.ts'
import { itemsOf, latestVersion, type TableWorld, tableWorld } from './world.ts'

const DAYS = ['2024-01-05', '2024-01-20', '2024-02-10', '2024-03-03', '2024-03-31']

/**
 * Reads a snapshot, with every file that it names.
 * @returns false: meanwhile it was no longer the current one, so it may have failed
 */
async function isRead(
  version: () => Promise<number>,
  read: () => Promise<readonly string[]>,
): Promise<boolean> {
  const before = await version()
  try {
    await read()
    return true
  } catch (error) {
    if ((await version()) === before) throw error
    return false
  }
}

it.each([
  ['run --redo', (world: TableWorld) => world.run({ redo: ['*'] })],
  [
    'prune',
    async (world: TableWorld) => pruneDataSet(await world.pipeline(), { olderThan: '12mo', env: {} }),
  ],
])('whoever reads the current snapshots again and again during %s misses no file', async (_, change) => {
  const world = await tableWorld(itemsOf(...DAYS))
  await world.run()
  const commits = async (): Promise<number> => (await readdir(join(world.out, '_delta_log'))).length
  const versions = async (): Promise<string> => `${await latestVersion(world.out)} ${await commits()}`
  const before = await versions()
  let isOver = false
  const reads = { iceberg: 0, delta: 0 }
  const readers = async (): Promise<void> => {
    while (!isOver) {
      if (await isRead(() => latestVersion(world.out), world.iceberg)) reads.iceberg++
      if (await isRead(commits, world.delta)) reads.delta++
    }
  }
  await Promise.all([
    readers(),
    change(world).finally(() => {
      isOver = true
    }),
  ])
  expect(await versions()).not.toBe(before)
  expect(Math.min(reads.iceberg, reads.delta)).toBeGreaterThan(1)
  expect(await world.iceberg()).toEqual(await world.shards())
  expect(await world.delta()).toEqual(await world.shards())
})
