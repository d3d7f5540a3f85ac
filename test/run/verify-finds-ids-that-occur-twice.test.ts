import { describe, expect, test } from 'vitest'
import { type Verification, verifyDataSet } from '../../src/index.ts'
import { some } from '../support/thorough.ts'
import { itemAt, serviceOf, worldAt } from './world.ts'

const MONTHS = 'windows: { from: 2024-01-01, until: 2024-03-01, every: month, per_chain: 1 }'

/**
 * Two months, each with a chain of its own, and a credential that the service has in both: it was imported again.
 * The ids of all queries are the same.
 */
async function verified(extract: string, transform: string, load: string): Promise<Verification> {
  const january = [1, 2, 3].map((id) => itemAt(id, '2024-01-10T00:00:00Z'))
  const february = [3, 4, 900_719_925_474].map((id) => itemAt(id, '2024-02-10T00:00:00Z'))
  const { url } = await serviceOf([...january, ...february], 100)
  const env = { ONE: 'first-secret', TWO: 'second-secret' }
  const here = await worldAt(url, `${extract}, ${MONTHS}`, { load: load, env })
  expect((await here.run(`{ ${transform} }`)).status).toBe('complete')
  return verifyDataSet(await here.read(`{ ${transform} }`))
}

const ONE_DOMAIN = 'domains: [one.example]'
const TWO_DOMAINS = 'domains: [one.example, two.example]'

describe.each(some(['parquet', 'csv'], 1))('verify, of %s,', (format) => {
  test.each([
    ['in another window of one query', ONE_DOMAIN, '[query, window]', 1],
    ['in one folder', ONE_DOMAIN, 'none', 1],
    ['for each of two queries, in folders of their own', TWO_DOMAINS, '[query]', 2],
    ['for each of two queries that share folders', TWO_DOMAINS, '[window]', 2],
  ])('counts an id that occurs twice %s, and finds no damage', async (_name, extract, partitionBy, times) => {
    const load = `format: ${format}, partition_by: ${partitionBy}`
    expect(await verified(extract, '', load)).toMatchObject({ ok: true, problems: [], repeated_ids: times })
  })

  test('counts none if there is no id column, or if the queries that share a folder cannot be told apart', async () => {
    const load = `format: ${format}, partition_by: [window]`
    const secrets = 'queries: [{ type: secret, secret_env: ONE }, { type: secret, secret_env: TWO }]'
    expect((await verified(ONE_DOMAIN, 'columns: [identity_name, imported_at]', load)).repeated_ids).toBe(0)
    expect((await verified(TWO_DOMAINS, 'columns: [id, imported_at]', load)).repeated_ids).toBe(0)
    expect((await verified(secrets, 'secret: redact', load)).repeated_ids).toBe(0)
    expect((await verified(secrets, 'secret: partial', load)).repeated_ids).toBe(0)
  })
})
