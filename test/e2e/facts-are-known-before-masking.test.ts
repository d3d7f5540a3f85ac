import { expect, it } from 'vitest'
import { counted, type Row } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, workspaceFor } from '../support/workspace.ts'

const FACTS = { policy: { min_length: 9, classes: 2 } }

const parts = (transform: object, load = {}): PipelineParts => ({
  transform: { secret_facts: FACTS, extra_columns: ['event_uid'], ...transform },
  load: { shard_rows: 60, ...load },
})

type Facts = readonly [kind: unknown, meets: unknown]

/** Of sandbox data: what its secrets are is told by their form. */
function factsOf(hash: unknown, type: unknown): Facts {
  if (hash === null) return [null, null]
  if (hash === '') return ['empty', null]
  const secret = String(hash)
  if (
    ['md5', 'sha1', 'bcrypt'].includes(String(type)) ||
    /^(?:[0-9a-f]{32}|[0-9a-f]{40}|\$2b\$.*)$/.test(secret)
  )
    return ['digest', null]
  const has = [/\p{Lu}/u, /\p{Ll}/u, /[0-9]/, /[^\p{Lu}\p{Ll}0-9]/u].filter((kind) => kind.test(secret))
  return ['plain', [...secret].length >= 9 && has.length >= 2]
}

/** On the summary page. */
const NAMES: Readonly<Record<string, string>> = {
  'plain true': 'plain, and meets the policy',
  'plain false': 'plain, and does not meet the policy',
  digest: 'digest',
  empty: 'empty',
  null: 'none',
}

it('the same facts are in shards of either format under every policy, and in what describes them', async () => {
  const clear = await newWorkspace(parts({ secret: 'plaintext' }), { publicFields: true })
  await exits(0, clear.run('--allow-plaintext'))
  const wanted = new Map(
    (await clear.rows()).map(({ id, hash, hash_type }) => [String(id), factsOf(hash, hash_type)]),
  )
  expect(new Set([...wanted.values()].map(String)).size).toBe(5)

  const ways = [
    ['plaintext', null],
    ['drop', {}],
    ['redact', { format: 'csv' }],
    ['partial', { engine: 'parquetjs-lite' }],
    ['hmac', { format: 'csv', engine: 'csv-stringify' }],
  ] as const
  for (const [secret, load] of THOROUGH ? ways : ways.slice(0, 3)) {
    const here =
      load === null
        ? clear
        : await workspaceFor(clear.sandbox, parts({ secret }, load), { SPILLWAY_MASK_KEY: 'k'.repeat(32) })
    if (load !== null) await exits(0, here.run())
    const sql = 'SELECT id::text AS id, secret_kind, secret_meets_policy FROM credentials'
    const { value } = await here.json('query', sql)
    const found = value.map((row: Row) => [row.id, [row.secret_kind, row.secret_meets_policy]])
    expect(new Map(found)).toEqual(wanted)
    const columns = { event_uid: 'STRING', secret_kind: 'STRING', secret_meets_policy: 'BOOLEAN' }
    expect((await here.manifest()).columns.slice(-3)).toEqual(
      Object.entries(columns).map(([name, type]) => ({ name, type, nullable: true })),
    )
    expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true })
    // What describes the rows does not depend on how they are masked.
    if (!THOROUGH && secret !== 'drop') continue
    await exits(0, here.call('summary'))
    const { facts } = await summaryPageIn(here.output)
    const kinds = [...wanted.values()].map(
      ([kind, meets]) => NAMES[`${kind}${meets === null ? '' : ` ${meets}`}`]!,
    )
    const counts = Object.fromEntries(facts!.secrets.groups.map(({ name, rows }) => [name, rows]))
    expect(counts).toEqual(Object.fromEntries(counted(kinds)))
    const ddl = await exits(0, here.call('ddl', '--dialect', 'postgres'))
    expect(ddl.stdout).toMatch(/secret_kind"? text[\s\S]*secret_meets_policy"? boolean/)
  }
})
