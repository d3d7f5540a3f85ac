import { expect, test } from 'vitest'
import { verifyDataSet } from '../../src/index.ts'
import { BUCKET, bucketHere, editObjects } from '../support/bucket.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

test.each(['parquet', 'csv'])('in a bucket: one GET and one HEAD for each, as %s', async (format) => {
  const { double } = await bucketHere()
  const days = [1, 2, 3].flatMap((day) => Array<string>(10).fill(`2024-01-0${day}T00:00:00.000000+00:00`))
  const service = await serviceOf(
    days.map((time, id) => itemAt(id, time)),
    10,
  )
  const extract = 'domains: [acme.com], windows: { from: 2024-01-01, until: 2024-01-04, every: 1d }'
  const here = worldAt(service.url, extract, { load: `format: ${format}, path: 's3://${BUCKET}/set'` })
  expect(await here.run()).toMatchObject({ status: 'complete', rows: 30, shards: 3 })
  const pipeline = await here.read()

  const newRequests = (): Record<string, number> => {
    const counts: Record<string, number> = {}
    for (const { operation, key } of double.log)
      if (key !== null && /part-\d+\./.test(key)) counts[operation] = (counts[operation] ?? 0) + 1
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
