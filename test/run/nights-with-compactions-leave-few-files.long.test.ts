import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { compactDataSet } from '../../src/data-set/index.ts'
import { readPipeline, systemClock } from '../../src/index.ts'
import { encoderBuild, version } from '../../src/package/index.ts'
import { feedWorld, sorted } from './feed-world.ts'

const NIGHTS = 14
const FEEDS = [1, 2]

function shardsIn(output: string): number {
  return readdirSync(output, { recursive: true }).filter((path) => /\/part-\d+\.csv$/.test(String(path)))
    .length
}

test('nights, some of them killed, with a compaction now and then, has every row once in few files', async () => {
  const world = await feedWorld(`identifiers: [${FEEDS}]`, { records: 800 })
  const compact = async () =>
    compactDataSet(await readPipeline('p.yaml', { env: {}, cwd: world.folder }), {
      clock: systemClock,
      stop: new AbortController().signal,
      onLog: () => {},
      version,
      build: encoderBuild(),
      maskKey: null,
      minShards: 4,
      onShard: () => {},
    })
  let most = 0
  for (let night = 1; night <= NIGHTS; night++) {
    world.day = night * 2
    if (night % 5 === 0) await world.runAndKill(5 + night)
    await world.run()
    most = Math.max(most, shardsIn(world.output))
    if (night % 7 === 0) expect((await compact()).shards.after).toBeGreaterThan(0)
  }
  for (const id of FEEDS) expect(sorted(world.ids()[`query=feed.${id}`])).toEqual(sorted(world.expected(id)))
  expect(world.isComplete()).toBe(true)
  expect(shardsIn(world.output)).toBeLessThan(most)
  expect(await compact()).toMatchObject({ folders: 0 })
})
