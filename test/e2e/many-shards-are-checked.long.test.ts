import { appendFile, copyFile, rename, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

// One shard for each day and domain: so many that the built command stats them in worker threads.
const [UNTIL, NEXT, MANY] = ['2024-12-31', '2025-01-01', 700] as const
const parts = (until: string) => ({
  extract: {
    domains: ['scatterholt.com', 'quillmere.net'],
    windows: { from: '2024-01-01', until, every: '1d' },
    concurrency: 8,
    max_requests: 1000,
  },
})

it('a second run notices a change of one shard among many', async () => {
  const here = await newWorkspace(parts(UNTIL), { records: 4000 })
  expect((await here.run()).code).toBe(0)
  const before = await here.manifest()
  expect(before.shards.length).toBeGreaterThan(MANY)
  const sent = here.sandbox.requests.length
  for (const index of [MANY >> 1, 0, before.shards.length - 1]) {
    const { path, bytes } = before.shards[index]!
    const shard = join(here.output, path)

    await rename(shard, `${shard}.away`)
    await exits(1, here.call('run'), `A shard is missing (out/${path})`)
    await rename(`${shard}.away`, shard)

    await appendFile(shard, 'x')
    await exits(1, here.call('run'), `A shard holds ${bytes + 1} bytes instead of ${bytes} (out/${path})`)
    await truncate(shard, bytes)

    const stranger = path.replace('part-00000', 'part-00001')
    await copyFile(shard, join(here.output, stranger))
    const said = 'A file among the shards is named by nothing: readers would take its rows for data'
    await exits(2, here.call('run'), `${said} (out/${stranger},`)
    await rm(join(here.output, stranger))
  }
  expect(here.sandbox.requests).toHaveLength(sent)
  expect((await here.manifest()).shards).toEqual(before.shards)

  await here.write(parts(NEXT))
  expect((await here.run()).summary).toMatchObject({ status: 'complete', requests: 2 })
})
