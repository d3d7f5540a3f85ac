import { expect, it } from 'vitest'
import { carryOutHere } from '../support/in-this-process.ts'
import { some } from '../support/thorough.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

it.each(some(['parquet', 'csv'], 1))(
  'verify counts rows that the service sent again too late to be known: %s',
  async (format) => {
    const ids = Array.from({ length: 30_000 }, (_, i) => i + 1)
    const items = [...ids, ...ids.slice(0, 3)].map((id) => itemAt(id, '2024-01-10T00:00:00Z'))
    const server = await serviceOf(items, 10_000)
    const extract = 'domains: [acme.example], page_size: 10000'
    const world = worldAt(server.url, extract, {
      load: `path: out, format: ${format}, shard_rows: 20000`,
    })
    expect(await world.run()).toMatchObject({ status: 'complete', rows: 30_003 })
    const verify = (...flags: string[]) =>
      carryOutHere({ args: ['verify', 'pipeline.yaml', ...flags], cwd: world.folder, env: {} })
    const { code, stdout } = await verify('--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, rows: 30_003, repeated_ids: 3 })
    expect((await verify()).stdout).toContain('3 rows have the id of another one of the query')
  },
)
