import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { statusShape } from '../support/json-shapes.ts'
import { microsOf, type Row, rowOf } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import type { CredentialJson } from '../support/sandbox.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const DAY_MS = 86_400_000
const BEGIN_MS = Date.parse('2024-01-01')

/** A workspace whose sandbox is at the day that the test sets. */
async function feeds(extract: Record<string, unknown> = {}, options = {}) {
  const clock = { day: 60 }
  const data = { now: () => BEGIN_MS + clock.day * DAY_MS, lateRate: 0.1, ...options }
  return { here: await newWorkspace({ extract: { resource: 'feed', ...extract } }, data), clock }
}

function rowsOf({ sandbox }: Workspace, identifier: number | null): Row[] {
  const at = (time: string | null) => (time === null ? null : String(microsOf(time)))
  return [...sandbox.expectedFeed(identifier)].map((item) => ({
    ...rowOf({ ...item, hash_type: null } as CredentialJson, { query: { type: 'domain', fqdn: '' } }),
    remediated_at: at(item.remediated_at),
    ignored_at: at(item.ignored_at),
    query_type: identifier === null ? 'tenant' : 'identifier',
    query_value: identifier === null ? 'tenant' : String(identifier),
  }))
}

test('rows have the promised columns, folders and values, and shards never change', async () => {
  const { here, clock } = await feeds()
  clock.day = 366
  expect((await here.run()).code).toBe(0)
  await here.expectExactly(rowsOf(here, null))
  const before = await here.manifest()
  for (const { path, partitions, imported_at } of before.shards) {
    const [, month] =
      /^credentials\/query=feed\.tenant\/import_window=(\d{4}-\d\d)-01\/part-00000\.parquet$/.exec(path)!
    expect(partitions).toHaveLength(1)
    expect(partitions[0]).toMatch(`feed.tenant/${month}-01..`)
    expect(imported_at?.min.slice(0, 7)).toBe(month)
    expect(imported_at?.max.slice(0, 7)).toBe(month)
  }
  expect(before.resource).toBe('feed')
  clock.day = 400
  const { summary } = await here.run()
  expect(summary.rows).toBeGreaterThan(0)
  const after = await here.manifest()
  expect(after.shards).toEqual(expect.arrayContaining(before.shards))
  expect(after.shards.filter(({ path }) => path.includes('part-00001')).length).toBeGreaterThan(0)
})

test('status, plan and verify tell how far feeds are read', async () => {
  const { here, clock } = await feeds({ page_size: 10 })
  expect(await planned(here)).toMatchObject({ min_requests: 1, expected_searches: null })
  await here.run()
  const found = (await statusOf(here)).partitions
  const feed = found.find(({ key }) => key === 'feed.tenant/all')!
  expect(feed).toMatchObject({ state: 'done', rows: 0, window: null })
  expect(feed.next).not.toBeNull()
  expect(found.reduce((sum, { rows }) => sum + rows, 0)).toBe(rowsOf(here, null).length)
  const partitions = { total: found.length, done: found.length, partial: 0, pending: 0 }
  expect(await planned(here)).toMatchObject({ min_requests: 1, partitions })
  expect((await here.json('verify')).value).toMatchObject({ ok: true, complete: true })
  clock.day = 90
  const { summary } = await here.run('--max-requests', '1')
  expect(summary.status).toBe('budget')
  expect((await here.json('verify')).value).toMatchObject({ complete: false })
  expect((await here.call('verify', '--complete')).code).toBe(1)
  expect((await here.run()).code).toBe(0)
  expect((await here.call('verify', '--complete')).code).toBe(0)
})

test('an identifier that fails leaves the others exported', async () => {
  const { here } = await feeds({ identifiers: [1, 99, 2] })
  const { summary, stdout } = await exits(1, here.run())
  expect(summary.partitions).toMatchObject({ failed: 1, pending: 0 })
  expect(stdout).toContain('identifier 99')
  expect(stdout).toContain('permission')
  await here.expectExactly([...rowsOf(here, 1), ...rowsOf(here, 2)])
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(false)
})

test.for([401, 403])('status %s names the tenant and the permission', async (status) => {
  const { here } = await feeds({}, { faults: [{ on: 'feed', kind: 'status', status }] })
  const { stdout } = await exits(3, here.run())
  expect(stdout).toMatch(/permission to read the feed of the tenant/)
})

// For repairs, too: `any-sequence-of-commands`.
test('a feed that is read again for a refused cursor leaves out what was pruned', async () => {
  const { here, clock } = await feeds(
    { page_size: 20 },
    { stateRate: 0, lateRate: 0, nastyRate: 0.3, cursorLifetimeMs: 5 * DAY_MS },
  )
  clock.day = 200
  await here.run()
  const days = Math.floor((Date.now() - Date.parse('2024-04-02')) / DAY_MS)
  const { value } = await here.json('prune', '--older-than', `${days}d`, '--yes')
  expect(value).toMatchObject({ partitions: 3, shards: 3 })
  const isKept = ({ imported_at }: Row) => Number(imported_at) / 1000 >= Date.parse('2024-04-01')
  const expectKept = async () => {
    await here.expectExactly(rowsOf(here, null).filter(isKept))
    expect((await here.json('verify')).value).toMatchObject({ ok: true, complete: true })
    const pruned = (await here.json('status', '--state', 'pruned')).value.partitions
    expect(pruned).toMatchObject([{ rows: 0 }, { rows: 0 }, { rows: 0 }])
    expect(await readdir(join(here.output, '_quarantine')).catch(() => [])).not.toContainEqual(
      expect.stringMatching(/2024-0[123]-01\.\./),
    )
  }
  await expectKept()
  const held = await here.rows()
  clock.day = 220
  const refused = await exits(1, here.run())
  await here.expectExactly(held)
  const [, key] = /--redo '(.*?)'/.exec(refused.stdout)!
  expect((await here.run('--redo', key!)).code).toBe(0)
  await expectKept()

  // A glob names them.
  expect((await here.run('--redo', 'feed.tenant/*')).code).toBe(0)
  await here.expectExactly(rowsOf(here, null))
  clock.day = 222
  expect((await here.run()).code).toBe(0)
  await here.expectExactly(rowsOf(here, null))
})

const planned = async (here: Workspace): Promise<unknown> => (await here.json('plan')).value

const statusOf = async (here: Workspace) => statusShape.parse((await here.json('status')).value)
