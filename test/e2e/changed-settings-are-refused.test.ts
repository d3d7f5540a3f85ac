import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { readParquet } from './support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from './support/rows.ts'
import { newWorkspace, type PipelineParts } from './support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-03-01' }
const BEGUN = {
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 5, max_requests: 6 },
  transform: { secret: 'hmac' },
} as const
const KEYS = { SPILLWAY_MASK_KEY: 'k'.repeat(32) }

const changes: Readonly<Record<string, PipelineParts>> = {
  'another name': { ...BEGUN, name: 'other' },
  'another order': { ...BEGUN, extract: { ...BEGUN.extract, order: 'desc' } },
  'another include': { ...BEGUN, extract: { ...BEGUN.extract, include: ['known_password_id'] } },
  'another search path': { ...BEGUN, service: { search_path: '/v5/_search' } },
  'another masking of secrets': { ...BEGUN, transform: { secret: 'redact' } },
  'another masking of identities': { ...BEGUN, transform: { secret: 'hmac', identity: 'hmac' } },
  'other columns': { ...BEGUN, transform: { secret: 'hmac', columns: ['id', 'hash'] } },
  'another format': { ...BEGUN, load: { format: 'csv' } },
  'another engine': { ...BEGUN, load: { engine: 'parquetjs-lite' } },
  'another compression': { ...BEGUN, load: { compression: 'gzip' } },
  'other encodings': { ...BEGUN, load: { parquet: { encodings: 'plain' } } },
  'another partitioning': { ...BEGUN, load: { partition_by: 'window' } },
  'no windows': { ...BEGUN, extract: { ...BEGUN.extract, windows: undefined } },
}

it('in an unfinished export, a change that would mix two data sets is refused with exit 2, and no file changes', async () => {
  const here = await newWorkspace(BEGUN, {}, KEYS)
  expect((await here.run()).code).toBe(4)
  const before = await digests(here.output)
  const sent = here.sandbox.requests.length

  for (const [change, parts] of some(Object.entries(changes), 5)) {
    await here.write(parts)
    const { code, stderr, stdout } = await here.run()
    const { status, requests } = JSON.parse(stdout)
    const refused = { change, code: 2, status: 'failed', requests: 0, advises: true }
    expect({ change, code, status, requests, advises: /--fresh/.test(stderr) }).toEqual(refused)
    expect(await digests(here.output), change).toEqual(before)
  }

  await here.write(BEGUN)
  const env = { ...here.env, SPILLWAY_MASK_KEY: 'l'.repeat(32) }
  const otherKey = await newWorkspace(BEGUN, {}, env)
  await otherKey.write({ ...BEGUN, load: { path: here.output } })
  const { code, stderr } = await otherKey.run()
  expect(code).toBe(2)
  expect(stderr).toContain('mask key')
  expect(stderr).not.toContain('llll')
  expect(await digests(here.output)).toEqual(before)
  expect(here.sandbox.requests).toHaveLength(sent)

  // Settings that do not affect rows may change, and queries may be added.
  await here.write({
    ...BEGUN,
    service: { retries: 2, timeout: '10s' },
    extract: {
      ...BEGUN.extract,
      domains: [...DOMAINS, 'mail.quillmere.net'],
      max_requests: 'none',
      concurrency: 2,
    },
    load: { shard_rows: 10 },
  })
  expect((await here.run()).code).toBe(0)
  const masking = { secret: 'hmac', key: KEYS.SPILLWAY_MASK_KEY } as const
  await here.expectRows([...DOMAINS, 'mail.quillmere.net'], { ...RANGE, masking })
})

it('--fresh starts over from any state, and leaves the files of others alone', async () => {
  const here = await newWorkspace(BEGUN, {}, KEYS)
  await here.run()
  const strangers = ['notes.txt', 'credentials/notes.txt'].map((name) => join(here.output, name))
  for (const stranger of strangers) await writeFile(stranger, 'mine').catch(() => {})
  const kept = strangers.filter((path) => existsSync(path))
  await here.write({
    ...BEGUN,
    transform: { secret: 'redact' },
    extract: { ...BEGUN.extract, max_requests: 'none' },
  })
  const before = await digests(here.output)
  const refused = await here.run('--fresh')
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' })
  expect(refused.stderr).toContain('--yes')
  expect(await digests(here.output)).toEqual(before)

  for (const damage of ['none', 'torn'] as const) {
    if (damage === 'torn') {
      await writeFile(join(here.output, '_state/checkpoint.jsonl'), 'not a checkpoint\nat all\n')
      await writeFile(join(here.output, '_manifest.json'), '{')
      expect([1, 2]).toContain((await here.run()).code)
    }
    await exits(0, here.run('--fresh', '--yes'))
    const found = (await readParquet(join(here.output, 'credentials', `query=domain.${DOMAINS[0]}`))).concat(
      await readParquet(join(here.output, 'credentials', `query=domain.${DOMAINS[1]}`)),
    )
    expect(difference(found, expectedOfDomains(here.sandbox, DOMAINS, RANGE))).toEqual(SAME)
    expect((await here.manifest()).runs).toHaveLength(1)
    for (const path of kept) expect(existsSync(path)).toBe(true)
  }
})

/** SHA-256 of every file by its path. */
async function digests(folder: string): Promise<Readonly<Record<string, string>>> {
  const found: [string, string][] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    found.push([
      path,
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex'),
    ])
  }
  return Object.fromEntries(found.sort())
}
