import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import * as library from '../../src/index.ts'
import {
  ExportError,
  pipelineFrom,
  readRows,
  runPipeline,
  startSandbox,
  verifyDataSet,
} from '../../src/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { portOf } from '../support/listening.ts'
import { startSandbox as endedSandbox } from '../support/sandbox.ts'

it('has seven names, one of them a class', () => {
  expect(Object.keys(library).sort()).toEqual([
    'ExportError',
    'pipelineFrom',
    'readPipeline',
    'readRows',
    'runPipeline',
    'startSandbox',
    'verifyDataSet',
  ])
})

it('exports, reads the rows, and verifies, also the signature', async () => {
  const sandbox = await endedSandbox({ records: 60, domains: ['scatterholt.com'], requestsPerSecond: 0 })
  const cwd = scratchFolder()
  const env = { SPILLWAY_TOKEN: sandbox.token }
  const settings = {
    name: 'trial',
    service: { base_url: sandbox.baseUrl, requests_per_second: 10_000 },
    extract: { domains: ['scatterholt.com'] },
    load: { path: 'out' },
  }
  const pipeline = await pipelineFrom(settings, { env, cwd })
  expect(await runPipeline(pipeline, { env })).toMatchObject({ status: 'complete', rows: 60 })
  let rows = 0
  for await (const batch of readRows(pipeline, { columns: ['identity_name'], batchRows: 7 })) {
    expect(batch.columns.map(({ name, type }) => [name, type])).toEqual([['identity_name', 'text']])
    rows += batch.rows
  }
  expect(rows).toBe(60)
  expect(await verifyDataSet(pipeline)).toMatchObject({ ok: true, complete: true, rows: 60 })
  const { publicKey } = generateKeyPairSync('ed25519')
  await writeFile(join(cwd, 'pub.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const { ok, problems } = await verifyDataSet(pipeline, { keyFile: 'pub.pem', cwd })
  expect([ok, problems.map(({ cause }) => cause)]).toEqual([false, ['signature']])
})

it('invalid options of the sandbox, and a port in use, are errors like all others', async () => {
  const port = await portOf(createServer())
  for (const options of [
    { records: -1 },
    { domains: [] },
    { from: 'x' },
    { recods: 1 } as object,
    { port },
  ]) {
    const error = await startSandbox(options).catch((thrown) => thrown)
    expect(error, JSON.stringify(options)).toBeInstanceOf(ExportError)
    expect(error).toMatchObject({ kind: 'config' })
  }
})
