import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readParquet } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { world } from './support/world.ts'

const DAY_MS = 86_400_000

test('each submission reads a feed to its end, and every row comes once', async () => {
  let day = 100
  const now = () => Date.parse('2024-01-01') + day * DAY_MS
  const here = await world({
    backend: 'postgres',
    sandbox: { now, lateRate: 0.1 },
    parts: { extract: { resource: 'feed', identifiers: [1], domains: undefined } },
  })
  here.workerHere()
  for (day of [100, 100, 300]) {
    const before = (await readParquet(join(here.folder, 'org-0')).catch(() => [])).length
    const { stdout } = await exits(0, here.submit('--wait', '--json'))
    const ids = [...here.sandbox.expectedFeed(1)].map(({ id }) => String(id)).sort()
    const rows = await readParquet(join(here.folder, 'org-0'))
    expect(rows.map(({ id }) => String(id)).sort()).toEqual(ids)
    expect(JSON.parse(stdout).rows).toBe(ids.length - before)
  }
})
