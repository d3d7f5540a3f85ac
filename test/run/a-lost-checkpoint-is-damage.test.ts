import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { itemAt, serviceOf, worldAt } from './world.ts'

test('a log without a checkpoint and a manifest is damage', async () => {
  const items = Array.from({ length: 8 }, (_, id) => itemAt(id, `2024-01-01T00:00:0${id}.000000+00:00`))
  const service = await serviceOf(items, 2)
  const extract = 'domains: [acme.com], concurrency: 1, page_size: 2, order: asc'
  const { run, rows, folder } = await worldAt(service.url, `${extract}, max_requests: 3`)
  await expect(run()).resolves.toMatchObject({ status: 'budget', rows: 6 })
  for (const name of ['_state/checkpoint.jsonl', '_manifest.json', '_report.html'])
    await rm(join(folder, 'out', name))
  await expect(run()).rejects.toMatchObject({
    kind: 'damaged',
    what: expect.stringContaining('a log but no'),
  })
  expect(await rows()).toEqual([])
  expect(service.received).toHaveLength(3)
})
