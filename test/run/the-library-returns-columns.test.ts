import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  type ManifestShard,
  type PipelineSettings,
  pipelineFrom,
  type RowBatch,
  readRows,
  runPipeline,
} from '../../src/index.ts'
import { rowsOf } from '../../src/rows/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { startSandbox } from '../support/sandbox.ts'

async function world(settings: Pick<PipelineSettings, 'load'> & { extract?: object }) {
  const sandbox = await startSandbox({
    records: 60,
    domains: ['scatterholt.com'],
    nullRate: 0.3,
    nastyRate: 0.3,
    requestsPerSecond: 0,
  })
  const cwd = scratchFolder()
  const env = { SPILLWAY_TOKEN: sandbox.token }
  const pipeline = await pipelineFrom(
    {
      name: 'trial',
      service: { base_url: sandbox.baseUrl, requests_per_second: 10_000 },
      extract: {
        domains: ['scatterholt.com'],
        page_size: 7,
        include: ['auth_domains', 'known_password_id'],
        ...settings.extract,
      },
      load: { path: 'out', shard_rows: 25, ...settings.load },
    },
    { env, cwd },
  )
  return { pipeline, env, sandbox }
}

async function gathered(batches: AsyncIterable<RowBatch>) {
  const rows: Record<string, unknown>[] = []
  for await (const batch of batches) rows.push(...rowsOf(batch))
  return rows
}

it.each([{ format: 'parquet' }, { format: 'csv' }, { format: 'csv', compression: 'gzip' }] as const)(
  'the rows of the files are read, all or some columns of some files: %j',
  async (load) => {
    const { pipeline, env, sandbox } = await world({ load })
    const shards: ManifestShard[] = []
    await runPipeline(pipeline, { env, onShard: (shard) => void shards.push(shard) })
    // They are published as they are encoded.
    shards.sort((a, b) => (a.path < b.path ? -1 : 1))
    expect(shards.map(({ rows }) => rows)).toEqual([25, 25, 10])
    const read = await gathered(readRows(pipeline, { batchRows: 4 }))
    expect(read.map(({ id }) => id)).toEqual(
      [...sandbox.expected({ query: { type: 'domain', fqdn: 'scatterholt.com' } })].map(({ id }) => id),
    )
    expect(new Set(read.map(({ hash }) => hash))).toEqual(new Set(['[REDACTED]', null]))

    const [second] = await gathered(readRows(pipeline, { columns: ['id'], shards: [shards[1]!.path] }))
    expect(second).toEqual({ id: read[25]!.id })
    await expect(gathered(readRows(pipeline, { columns: ['hush'] }))).rejects.toThrow('no column "hush"')
  },
)

it.each(['parquet', 'csv'] as const)('a damaged %s shard is named', async (format) => {
  const { pipeline, env } = await world({ load: { format } })
  const paths: string[] = []
  await runPipeline(pipeline, { env, onShard: ({ path }) => void paths.push(path) })
  const path = paths[1]!
  await writeFile(join(pipeline.load.path, path), 'torn')
  await expect(gathered(readRows(pipeline))).rejects.toMatchObject({ kind: 'damaged', where: `out/${path}` })
})
