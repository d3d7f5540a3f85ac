import { expect, it, onTestFinished, vi } from 'vitest'
import { BUCKET, namesIn, startBucket } from '../support/bucket.ts'
import { newWorkspace, type PipelineParts } from '../support/workspace.ts'

const parts = (table_formats: readonly string[]): PipelineParts => ({
  extract: {
    domains: ['scatterholt.com'],
    windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' },
  },
  load: { path: `s3://${BUCKET}/set`, table_formats },
})

it('a run without table_formats sends a bucket no request for tables, unless some are there', async () => {
  const { double, env } = await startBucket()
  onTestFinished(() => double.close())
  onTestFinished(() => void vi.unstubAllEnvs())
  // So that commands run in this process.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
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
