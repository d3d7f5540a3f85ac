import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newWorkspace } from '../e2e/support/workspace.ts'
import { spillway } from './spillway.ts'

const PEM = { type: 'pkcs8', format: 'pem' } as const

it('an auditor needs neither the address of the service, nor a token, nor the secrets that are searched for', async () => {
  const here = await newWorkspace(
    {
      extract: {
        domains: ['scatterholt.com'],
        queries: [{ type: 'secret', secret_env: 'LEAKED' }],
        windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' },
      },
      load: { format: 'csv' },
    },
    {},
    { LEAKED: 'hunter2-of-the-year' },
  )
  expect((await here.run()).code).toBe(0)
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  await writeFile(join(here.folder, 'key.pem'), privateKey.export(PEM))
  await writeFile(join(here.folder, 'pub.pem'), publicKey.export({ ...PEM, type: 'spki' }))
  const { host } = new URL(here.sandbox.baseUrl)

  for (const words of [
    ['status'],
    ['verify', '--complete'],
    ['query', 'SELECT count(*) FROM credentials'],
    ['ddl', '--dialect', 'snowflake'],
    ['load', '--to', 'duckdb:leaks.db'],
    ['sign', '--key', 'key.pem'],
    ['verify', '--signature', '--key', 'pub.pem'],
    ['evidence', '--output', 'acme.tar', '--key', 'pub.pem'],
  ]) {
    const [command, ...flags] = words as [string, ...string[]]
    const { code, stderr } = await spillway([command, 'pipeline.yaml', ...flags], here.folder, {})
    expect([command, code, stderr]).toEqual([command, 0, expect.not.stringContaining('not set')])
  }
  const summary = await spillway(['summary', 'pipeline.yaml'], here.folder, {})
  expect(summary.code, summary.stderr).toBe(0)
  // The report still names the service.
  const page = await spillway(['evidence', 'pipeline.yaml', '--output', 'b.tar'], here.folder, {})
  expect(page.code, page.stderr).toBe(0)
  expect(await readFile(join(here.output, '_report.html'), 'utf8')).toContain(`<dd>${host}</dd>`)

  const plan = await spillway(['plan', 'pipeline.yaml', '--json'], here.folder, {})
  expect([plan.code, JSON.parse(plan.stdout).partitions]).toEqual([
    0,
    { total: 4, done: 4, partial: 0, pending: 0, pruned: 0 },
  ])

  // What sends requests names what is missing, as ever.
  for (const words of [['run'], ['check']]) {
    const refused = await spillway([words[0]!, 'pipeline.yaml', ...words.slice(1)], here.folder, {})
    expect([words, refused.code, refused.stderr]).toEqual([
      words,
      2,
      expect.stringContaining('SPILLWAY_BASE_URL is not set'),
    ])
  }
  const access = { SPILLWAY_BASE_URL: here.sandbox.baseUrl, LEAKED: 'x-and-more-of-it' }
  expect((await spillway(['run', 'pipeline.yaml'], here.folder, access)).stderr).toContain(
    'SPILLWAY_TOKEN is not set',
  )
})
