import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  exportRows,
  type ManifestShard,
  type PipelineSettings,
  pipelineFrom,
  readRows,
  readStatus,
  rowsOf,
  startSandbox,
} from '../../src/index.ts'

async function world(settings: Pick<PipelineSettings, 'load'> & { extract?: object }) {
  const sandbox = await startSandbox({
    records: 60,
    domains: ['scatterholt.com'],
    nullRate: 0.3,
    nastyRate: 0.3,
    requestsPerSecond: 0,
  })
  onTestFinished(() => sandbox.close())
  const cwd = await mkdtemp(join(tmpdir(), 'spillway-rows-'))
  onTestFinished(() => rm(cwd, { recursive: true, force: true }))
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
  return { pipeline, env }
}

async function gathered(batches: AsyncIterable<Parameters<typeof rowsOf>[0]>) {
  const rows: Record<string, unknown>[] = []
  for await (const batch of batches) rows.push(...rowsOf(batch))
  return rows
}

it.each([{ format: 'parquet' }, { format: 'csv' }, { format: 'csv', compression: 'gzip' }] as const)(
  'rows of the run are those of the files: %j',
  async (load) => {
    const { pipeline, env } = await world({ load })
    const shards: ManifestShard[] = []
    const given = await gathered(exportRows(pipeline, { env, onShard: (shard) => void shards.push(shard) }))
    expect(given).toHaveLength(60)
    expect(new Set(given.map(({ hash }) => hash))).toEqual(new Set(['[REDACTED]', null]))
    const read = await gathered(readRows(pipeline, { batchRows: 4 }))
    expect(read).toEqual(given)
    expect(shards.map(({ rows }) => rows)).toEqual([25, 25, 10])

    const [second] = await gathered(readRows(pipeline, { columns: ['id'], shards: [shards[1]!.path] }))
    expect(second).toEqual({ id: given[25]!.id })
    await expect(gathered(readRows(pipeline, { columns: ['hush'] }))).rejects.toThrow('no column "hush"')
  },
)

it.each(['parquet', 'csv'] as const)('a damaged %s shard is named', async (format) => {
  const { pipeline, env } = await world({ load: { format } })
  const paths: string[] = []
  await gathered(exportRows(pipeline, { env, onShard: ({ path }) => void paths.push(path) }))
  const path = paths[1]!
  await writeFile(join(pipeline.load.path, path), 'torn')
  await expect(gathered(readRows(pipeline))).rejects.toMatchObject({ kind: 'damaged', where: `out/${path}` })
})

it('leaving the loop stops the run, and the next one exports the rest', async () => {
  const { pipeline, env } = await world({ load: {}, extract: { concurrency: 1 } })
  const first: unknown[] = []
  for await (const batch of exportRows(pipeline, { env })) {
    first.push(...rowsOf(batch))
    break
  }
  const { totals } = await readStatus(pipeline)
  expect(totals.done).toBe(0)
  expect(totals.rows).toBeGreaterThanOrEqual(7)
  const rest = await gathered(exportRows(pipeline, { env }))
  expect(rest.length).toBe(60 - totals.rows)
})

it.each([
  ['throws', () => raise()],
  ['is rejected', async () => raise()],
])(
  'an onBatch that %s ends the run with its error, and the next run goes on after its batch',
  async (_how, onBatch) => {
    const { pipeline, env } = await world({ load: {} })
    const { runPipeline } = await import('../../src/index.ts')
    await expect(runPipeline(pipeline, { env, onBatch })).rejects.toThrow('enough')
    await expect(gathered(exportRows(pipeline, { env }))).resolves.toHaveLength(60 - 7)
  },
)

function raise(): never {
  throw new RangeError('enough')
}
