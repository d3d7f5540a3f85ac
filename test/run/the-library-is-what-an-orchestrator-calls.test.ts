import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import * as library from '../../src/index.ts'
import {
  ExportError,
  type ManifestShard,
  type PipelineSettings,
  pipelineFrom,
  type RowBatch,
  readRows,
  runPipeline,
  startSandbox,
  verifyDataSet,
} from '../../src/index.ts'
import { rowsOf } from '../../src/rows/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { writeKeyPair } from '../support/key-pair.ts'
import { portOf } from '../support/listening.ts'
import { startSandbox as endedSandbox } from '../support/sandbox.ts'

const query = { type: 'domain', fqdn: 'scatterholt.com' } as const

async function world(load: PipelineSettings['load']) {
  const data = { records: 60, domains: [query.fqdn], nullRate: 0.3, nastyRate: 0.3 }
  const sandbox = await endedSandbox({ ...data, requestsPerSecond: 0 })
  const cwd = scratchFolder()
  const env = { SPILLWAY_TOKEN: sandbox.token }
  const settings: PipelineSettings = {
    name: 'trial',
    service: { base_url: sandbox.baseUrl, requests_per_second: 10_000 },
    extract: { domains: [query.fqdn], page_size: 7, include: ['auth_domains', 'known_password_id'] },
    load: { path: 'out', shard_rows: 25, ...load },
  }
  return { pipeline: await pipelineFrom(settings, { env, cwd }), env, cwd, sandbox }
}

async function gathered(batches: AsyncIterable<RowBatch>) {
  const rows: Record<string, unknown>[] = []
  for await (const batch of batches) rows.push(...rowsOf(batch))
  return rows
}

it('has seven names, one of them a class', () => {
  const names = 'ExportError pipelineFrom readPipeline readRows runPipeline startSandbox verifyDataSet'
  expect(Object.keys(library).sort().join(' ')).toBe(names)
})

it.each([{ format: 'parquet' }, { format: 'csv' }, { format: 'csv', compression: 'gzip' }] as const)(
  'exports and verifies, also the signature; all or some columns of all or some files are read: %j',
  async (load) => {
    const { pipeline, env, cwd, sandbox } = await world(load)
    const shards: ManifestShard[] = []
    const onShard = (shard: ManifestShard) => void shards.push(shard)
    expect(await runPipeline(pipeline, { env, onShard })).toMatchObject({ status: 'complete', rows: 60 })
    // They are published as they are encoded.
    shards.sort((a, b) => (a.path < b.path ? -1 : 1))
    expect(shards.map(({ rows }) => rows)).toEqual([25, 25, 10])
    const read = await gathered(readRows(pipeline, { batchRows: 4 }))
    expect(read.map(({ id }) => id)).toEqual([...sandbox.expected({ query })].map(({ id }) => id))
    expect(new Set(read.map(({ hash }) => hash))).toEqual(new Set(['[REDACTED]', null]))
    for await (const { columns } of readRows(pipeline, { columns: ['identity_name'] }))
      expect(columns.map(({ name, type }) => [name, type])).toEqual([['identity_name', 'text']])
    const [second] = await gathered(readRows(pipeline, { columns: ['id'], shards: [shards[1]!.path] }))
    expect(second).toEqual({ id: read[25]!.id })
    await expect(gathered(readRows(pipeline, { columns: ['hush'] }))).rejects.toThrow('no column "hush"')

    expect(await verifyDataSet(pipeline)).toMatchObject({ ok: true, complete: true, rows: 60 })
    writeKeyPair(cwd)
    const { ok, problems } = await verifyDataSet(pipeline, { keyFile: 'pub.pem', cwd })
    expect([ok, problems.map(({ cause }) => cause)]).toEqual([false, ['signature']])

    const { path } = shards[1]!
    await writeFile(join(pipeline.load.path, path), 'torn')
    const damaged = { kind: 'damaged', where: `out/${path}` }
    await expect(gathered(readRows(pipeline))).rejects.toMatchObject(damaged)
  },
)

it('invalid options of the sandbox, and a port in use, are errors like all others', async () => {
  const port = await portOf(createServer())
  const unknown = { recods: 1 } as object
  for (const options of [{ records: -1 }, { domains: [] }, { from: 'x' }, unknown, { port }]) {
    const error = await startSandbox(options).catch((thrown) => thrown)
    expect(error, JSON.stringify(options)).toBeInstanceOf(ExportError)
    expect(error).toMatchObject({ kind: 'config' })
  }
})
