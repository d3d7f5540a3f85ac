import { expect, it } from 'vitest'
import { BUCKET, bucketHere, namesIn } from '../support/bucket.ts'
import { monthsUntil, newWorkspace, type PipelineParts } from '../support/workspace.ts'

const parts = (table_formats: readonly string[]): PipelineParts => ({
  extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-03-01') },
  load: { path: `s3://${BUCKET}/set`, table_formats },
})

it('a run without table_formats sends a bucket no request for tables, unless some are there', async () => {
  const { double, env } = await bucketHere()
  const here = await newWorkspace(parts([]), {}, env)
  /** Requests of a run that look for tables. */
  const requestsForTables = async (): Promise<readonly string[]> => {
    double.log.length = 0
    const { code, stderr } = await here.run()
    expect(code, stderr).toBe(0)
    const asked = double.log.map(({ operation, key, query }) => [operation, key, ...query.flat()].join(' '))
    return asked.filter((each) => /_iceberg|_delta_log/.test(each))
  }
  expect(await requestsForTables()).toEqual([])

  await here.write(parts(['iceberg', 'delta']))
  expect((await here.json('tables')).code).toBe(0)
  expect(namesIn(double, 'set/_iceberg').length).toBeGreaterThan(0)
  await here.write(parts([]))
  expect((await requestsForTables()).length).toBeGreaterThan(0)
  expect([...namesIn(double, 'set/_iceberg'), ...namesIn(double, 'set/_delta_log')]).toEqual([])
  expect(await requestsForTables()).toEqual([])
})
