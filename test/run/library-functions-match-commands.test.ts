import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import * as library from '../../src/index.ts'
import {
  forgetPeople,
  isExportError,
  packEvidence,
  pipelineFrom,
  pruneDataSet,
  readRows,
  rowsOf,
  runPipeline,
  signDataSet,
  startSandbox,
  summarizeDataSet,
  tableStatements,
  verifyDataSet,
} from '../../src/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { portOf } from '../support/listening.ts'

it('signs an export, packs its evidence, and prunes it', async () => {
  const sandbox = await startSandbox({ records: 60, domains: ['scatterholt.com'], requestsPerSecond: 0 })
  onTestFinished(() => sandbox.close())
  const cwd = scratchFolder()
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  await writeFile(join(cwd, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  await writeFile(join(cwd, 'pub.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const env = { SPILLWAY_TOKEN: sandbox.token }
  const settings = {
    name: 'trial',
    service: { base_url: sandbox.baseUrl, requests_per_second: 10_000 },
    extract: {
      domains: ['scatterholt.com'],
      windows: { from: '2024-01-01', until: '2025-01-01', every: 'year' },
    },
    load: { path: 'out' },
  }
  const pipeline = await pipelineFrom(settings, { env, cwd })
  await runPipeline(pipeline, { env })

  const signed = await signDataSet(pipeline, 'key.pem', { cwd, env })
  expect(signed).toMatchObject({ pipeline: 'trial', complete: true, rows: 60 })
  expect((await readFile(signed.signature)).byteLength).toBe(64)
  await expect(signDataSet(pipeline, 'pub.pem', { cwd, env })).rejects.toSatisfy(isExportError)

  const keys = { keyFile: 'pub.pem', cwd }
  expect(await verifyDataSet(pipeline, keys)).toMatchObject({ ok: true, rows: 60 })
  expect((await verifyDataSet(pipeline, { ...keys, notBeforeMs: Date.now() + 60_000 })).problems).toEqual([
    { path: '_manifest.json', problem: expect.stringContaining('older than required'), cause: 'signature' },
  ])
  expect(await summarizeDataSet(pipeline)).toMatchObject({ complete: true, rows: 60 })

  const { tar, files } = await packEvidence(pipeline, { keyFile: 'pub.pem', cwd, env })
  expect(files).toContain('public-key.pem')
  expect(tar.byteLength % 512).toBe(0)

  expect(tableStatements(pipeline, 'postgres')).toMatch(/create table/i)
  for (const name of ['', 'n'.repeat(60)]) {
    expect(() => tableStatements(pipeline, 'postgres', name)).toThrow(/--table/)
  }
  expect(() => tableStatements(pipeline, 'duckdb', '')).toThrow(/The name of the table is empty/)

  const names: string[] = []
  for await (const batch of readRows(pipeline, { columns: ['identity_name'] })) {
    for (const { identity_name } of rowsOf(batch)) names.push(identity_name)
  }
  const person = names[0]!.toUpperCase()
  const theirs = names.filter((name) => name.toUpperCase() === person).length
  // Other commands have copies in the folder for temporary files, which a note would name.
  vi.stubEnv('TMPDIR', cwd)
  onTestFinished(() => void vi.unstubAllEnvs())
  const found = await forgetPeople(pipeline, [person], { dryRun: true, cwd, env })
  expect(found).toMatchObject({ identities: 1, rows: theirs, shards: 1 })
  expect(await forgetPeople(pipeline, [person], { cwd, env })).toEqual(found)
  const { rows, forgotten } = await verifyDataSet(pipeline)
  expect([rows, forgotten]).toEqual([60 - theirs, theirs])

  // The year has ended by the clock of this machine.
  await expect(pruneDataSet(pipeline, { cwd, env })).rejects.toSatisfy((error) =>
    isExportError(error, 'config'),
  )
  const planned = await pruneDataSet(pipeline, { olderThan: '1d', dryRun: true, cwd, env })
  expect(planned).toMatchObject({ partitions: 1, rows })
  expect((await verifyDataSet(pipeline)).rows).toBe(rows)
  const { before: _, ...gone } = planned
  expect(await pruneDataSet(pipeline, { olderThan: '1d', cwd, env })).toMatchObject(gone)
  expect((await verifyDataSet(pipeline)).rows).toBe(0)
})

it('invalid options of the sandbox, and a port in use, are errors like all others', async () => {
  for (const options of [{ records: -1 }, { domains: [] }, { from: 'x' }, { recods: 1 } as object]) {
    const error = await startSandbox(options).catch((thrown) => thrown)
    expect(isExportError(error, 'config'), JSON.stringify(options)).toBe(true)
  }
  const port = await portOf(createServer())
  await expect(startSandbox({ port })).rejects.toSatisfy((error) => isExportError(error, 'config'))
})

it('exports no classes but its errors', () => {
  const classes = Object.entries(library).filter(([, value]) => /^class\b/.test(String(value)))
  expect(classes.map(([name]) => name)).toEqual(['ExportError'])
})
