import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-03-01' }
const BEGUN = {
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 5, max_requests: 6 },
  transform: { secret: 'hmac' },
} as const
const KEYS = { SPILLWAY_MASK_KEY: 'k'.repeat(32) }

/** Every setting that must not change is in `test/state/settings-and-manifest`. */
const changes: Readonly<Record<string, PipelineParts>> = {
  'another name': { ...BEGUN, name: 'other' },
  'another order': { ...BEGUN, extract: { ...BEGUN.extract, order: 'desc' } },
  'another masking of secrets': { ...BEGUN, transform: { secret: 'redact' } },
  'another format': { ...BEGUN, load: { format: 'csv' } },
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
