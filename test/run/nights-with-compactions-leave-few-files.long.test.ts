import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/index.ts'
import { compactDataSet, pruneDataSet, WritableDataSet } from '../../src/data-set/index.ts'
import { encoderBuild, version } from '../../src/package/index.ts'
import { sql } from '../support/read-shards.ts'
import { times } from '../support/thorough.ts'
import { loadHere, pipelineIn } from '../warehouse/in-process.ts'
import { inDuckdb } from '../warehouse/targets.ts'
import { DAY_MS, type FeedWorld, feedWorld, sorted } from './feed-world.ts'

const FEEDS = [1, 2]
const BEGIN_MS = Date.parse('2024-01-01')
/** Windows are pruned after so many days. */
const KEPT_DAYS = 20

test.each([
  { nights: times(150, 365), by: '[query]', shards: 24 },
  { nights: 61, by: '[query, window]', shards: 24 },
])(
  '$nights nights by $by, some of them killed, with compactions, prunes and loads: every row once, in few files',
  async ({ nights, by, shards }) => {
    const world = await feedWorld(
      `identifiers: [${FEEDS}]`,
      { records: 800 },
      `format: csv, partition_by: ${by}`,
    )
    let before = 0
    // Each leaves an object in the log, which the run that was killed may still try to write.
    let takeovers = 0
    for (let night = 1; night <= nights; night++) {
      world.day = night
      if (night % 40 === 0) {
        await world.runAndKill(2 + night / 40)
        takeovers++
      }
      await world.run()
      if (night % 7 === 0) await compact(world)
      if (night % 30 !== 0) continue
      before = BEGIN_MS + (night - KEPT_DAYS) * DAY_MS
      await prune(world, before)
      await load(world)
      expect(filesIn(world, 'credentials').length).toBeLessThan(shards)
      expect(filesIn(world, '_state').length - takeovers).toBeLessThanOrEqual(12)
    }
    expect(world.isComplete()).toBe(true)
    // A shard of several windows stays until all are old.
    const from = by === '[query]' ? 0 : Date.parse(`${new Date(before).toISOString().slice(0, 7)}-01`)
    await load(world)
    const loaded = await idsInTable(world)
    for (const id of FEEDS) {
      const expected = [...world.sandbox.expectedFeed(id)]
        .filter(({ imported_at }) => Date.parse(imported_at) >= from)
        .map((item) => item.id)
      expect(expected.length).toBeGreaterThan(20)
      const found = Object.entries(world.ids()).filter(([folder]) => folder === `query=feed.${id}`)
      expect(sorted(found.flatMap(([, ids]) => ids))).toEqual(sorted(expected))
      expect(sorted(loaded.get(id))).toEqual(sorted(expected))
    }
    await compact(world)
    expect((await load(world)).rows).toBe(0)
    expect(await compact(world)).toMatchObject({ folders: 0 })
  },
)

const openedOf = async ({ folder }: FeedWorld) => WritableDataSet.of(await pipelineIn({ folder, env: {} }))

const load = ({ folder }: FeedWorld) => loadHere({ folder, env: {} }, { url: 'duckdb:leaks.db' })

const options = () => ({
  clock: systemClock,
  stop: new AbortController().signal,
  onLog: () => {},
  version,
  build: encoderBuild(),
  maskKey: null,
  readSecret: async () => null,
})

async function compact(world: FeedWorld) {
  return compactDataSet(await openedOf(world), 4, options())
}

async function prune(world: FeedWorld, beforeMs: number) {
  return pruneDataSet(await openedOf(world), beforeMs * 1000, options())
}

function filesIn({ output }: FeedWorld, folder: string): readonly string[] {
  try {
    const entries = readdirSync(join(output, folder), { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  } catch {
    return []
  }
}

async function idsInTable({ folder }: FeedWorld): Promise<ReadonlyMap<number, readonly number[]>> {
  const query = 'SELECT query_value::int AS feed, list(id::double) AS ids FROM credentials GROUP BY 1'
  const rows = await inDuckdb(join(folder, 'leaks.db'), () => sql(query), '(READ_ONLY)')
  return new Map(rows.map(({ feed, ids }) => [Number(feed), ids as unknown as number[]]))
}
