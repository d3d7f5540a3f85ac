import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { verifyDataSet } from '../../src/data-set/index.ts'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { BUCKET, editObjects, startBucket } from '../support/bucket.ts'
import { itemAt, serviceOf } from './world.ts'

test.each(['parquet', 'csv'])('in a bucket: one GET and one HEAD for each, as %s', async (format) => {
  const { double, env } = await startBucket()
  const folder = await mkdtemp(join(tmpdir(), 'spillway-verify-'))
  onTestFinished(async () => {
    vi.unstubAllEnvs()
    await double.close()
    await rm(folder, { recursive: true, force: true })
  })
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const items = Array.from({ length: 30 }, (_, id) =>
    itemAt(id, `2024-01-0${1 + (id % 3)}T00:00:00.000000+00:00`),
  )
  const byTime = items.toSorted((a, b) => String(a.imported_at).localeCompare(String(b.imported_at)))
  const service = await serviceOf(byTime, 10)
  await writeFile(
    join(folder, 'p.yaml'),
    `name: trial
service: { base_url: '${service.url}', requests_per_second: 10000, retries: 0 }
extract: { domains: [acme.com], windows: { from: 2024-01-01, until: 2024-01-04, every: 1d } }
load: { format: ${format}, path: 's3://${BUCKET}/set' }
`,
  )
  const pipeline = await readPipeline('p.yaml', { env: {}, cwd: folder })
  const run = await runPipeline(pipeline, await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 'token' } }))
  expect(run).toMatchObject({ status: 'complete', rows: 30, shards: 3 })

  const newRequests = (): Record<string, number> => {
    const counts: Record<string, number> = {}
    for (const { operation, key } of double.log) {
      if (key !== null && /part-\d+\./.test(key)) counts[operation] = (counts[operation] ?? 0) + 1
    }
    double.log.length = 0
    return counts
  }
  newRequests()
  expect(await verifyDataSet(pipeline)).toMatchObject({ ok: true, shards: 3, rows: 30 })
  expect(newRequests()).toEqual({ HeadObject: 3, GetObject: 3 })

  editObjects(double, /2024-01-02.*part-00000/, (text) => text.replace(/.$/s, '!'))
  const { problems } = await verifyDataSet(pipeline)
  // As text a shard of Parquet has another length.
  expect(problems).toEqual([expect.objectContaining({ cause: format === 'csv' ? 'checksum' : 'size' })])
})
