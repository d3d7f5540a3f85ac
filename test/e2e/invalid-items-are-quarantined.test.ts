import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { quarantineShape, statusShape } from '../support/json-shapes.ts'
import { quarantineOf } from '../support/quarantine.ts'
import { expectedRows, isObject, isValid, type Masking, maskSecret, TIMESTAMP } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const query = { type: 'domain', fqdn: 'scatterholt.com' } as const
const BROKEN = { records: 600, invalidRate: 0.5 }
const MONTHS = ['2024-01-01', '2024-02-01', '2024-03-01', '2024-04-01']
const WINDOWS = { from: MONTHS[0]!, until: MONTHS.at(-1)!, every: 'month' }
const KEY = 'k'.repeat(40)

const POLICIES = [
  { secret: 'redact', identity: 'keep', format: 'parquet' },
  { secret: 'partial', identity: 'drop', format: 'parquet' },
  { secret: 'plaintext', identity: 'drop', format: 'csv' },
  { secret: 'hmac', identity: 'hmac', format: 'csv' },
  { secret: 'drop', identity: 'hmac', format: 'parquet' },
] as const

it.each(some(POLICIES, 2))(
  'rows and quarantine together hold every item, masked: $secret, $identity, as $format',
  async ({ format, ...policies }) => {
    // A chain for each window: an item without a time at the border of two comes with both.
    const extract = { domains: [query.fqdn], windows: { ...WINDOWS, per_chain: 1 }, page_size: 17 }
    const here = await newWorkspace({ extract, transform: policies, load: { format } }, BROKEN, {
      SPILLWAY_MASK_KEY: KEY,
    })
    const { summary } = await exits(0, here.run('--allow-plaintext'))
    const { masking: recorded, columns } = await here.manifest()
    expect(recorded).toEqual(policies)
    const names = columns.map(({ name }) => name)
    expect(names.includes('hash')).toBe(policies.secret !== 'drop')
    expect(names.includes('identity_name')).toBe(policies.identity !== 'drop')

    const range = { from: WINDOWS.from, until: WINDOWS.until }
    const masking: Masking = { ...policies, key: KEY }
    await here.expectExactly(expectedRows(here.sandbox, { query, ...range, masking }))

    const lines = await quarantined(here)
    const wanted = MONTHS.slice(0, -1).flatMap((from, i) => rejected(here, from, MONTHS[i + 1]!))
    expect(lines.map(({ id }) => id).sort()).toEqual(wanted.map(idOf).sort())
    expect(summary.quarantined).toBe(wanted.length)
    expect((await here.manifest()).totals.quarantined).toBe(wanted.length)
    expect(statusShape.parse((await here.json('status')).value).totals.quarantined).toBe(wanted.length)

    for (const { item, partition } of lines) {
      expect(partition).toMatch(/^domain\.scatterholt\.com\/2024-0[123]-01\.\.2024-0[234]-01$/)
      if (!isObject(item)) expect(item).toBe('[REDACTED]')
    }
    const secrets = new Map(wanted.flatMap((item) => (isObject(item) ? [[idOf(item), item.hash]] : [])))
    for (const { id, item } of lines) {
      if (typeof id !== 'number' || !isObject(item)) continue
      const secret = secrets.get(id)
      if (typeof secret === 'string') expect(item.hash).toBe(maskSecret(secret, policies.secret, KEY))
      else expect(item.hash).toBe(secret === null ? null : '[REDACTED]')
    }
    for (const name of await readdir(join(here.output, '_quarantine')))
      expect((await stat(join(here.output, '_quarantine', name))).mode & 0o777).toBe(0o600)
  },
)

it('complete always comes with what is in quarantine, and why; a stricter limit makes it no longer so', async () => {
  const parts = {
    extract: { domains: [query.fqdn], windows: WINDOWS },
    transform: { max_quarantined: '90%' },
  }
  const here = await newWorkspace(parts, BROKEN)
  const { quarantined: items } = (await here.run()).summary
  const said = new RegExp(
    `but ${items} items were left out \\(quarantine, in 3 partitions, see _quarantine: [a-z_.]+: `,
  )
  const { heading, reasons } = await summaryPageIn(here.output)
  expect([heading, ...reasons]).toEqual([
    'Complete: all 3 partitions',
    `${items} items were left out (quarantine, in 3 partitions, see _quarantine)`,
  ])
  const verify = await exits(0, here.call('verify', '--complete'))
  expect(verify.stdout).toMatch(said)
  expect(verify.stdout).toContain('transform.max_quarantined: 90% permits the items in quarantine')
  expect((await here.call('run')).stdout).toMatch(said)

  await here.write({ ...parts, transform: { max_quarantined: 5 } })
  const strict = await exits(1, here.call('verify', '--complete'))
  const why = '3 partitions have more items in quarantine than transform.max_quarantined: 5 permits'
  expect(strict.stdout).toContain(why)
  expect((await here.call('verify')).code).toBe(0)
})

const quarantined = async (here: Workspace) =>
  (await quarantineOf(here.output)).map((entry) => quarantineShape.parse(entry))

/**
 * Items of a window that belong in quarantine. The service's filter is inclusive, so items at the very end come too.
 * Those with a valid time belong to the next window. The others belong to no known window, so they count here.
 */
function rejected(here: Workspace, from: string, until: string): unknown[] {
  const end = `${until}T00:00:00.000001Z`
  const atEnd = [...here.sandbox.expected({ query, from: until, until: end })]
  const hasTime = (item: unknown): boolean => isObject(item) && TIMESTAMP.test(String(item.imported_at))
  const all = [...here.sandbox.expected({ query, from, until }), ...atEnd.filter((item) => !hasTime(item))]
  return all.filter((item) => !isValid(item))
}

function idOf(item: unknown): number | null {
  return isObject(item) && Number.isSafeInteger(item.id) ? Number(item.id) : null
}
