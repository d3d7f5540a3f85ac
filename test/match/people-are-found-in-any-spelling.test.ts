import { createHmac } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { beforeAll, describe, expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import type { Workspace } from '../support/workspace.ts'
import { exportPlanted, filesWith, MASK_KEY, type Planted } from './planted.ts'

/** People of the directory, and spellings of their addresses in the leak. */
const ADA = 'ada.loam@scatterholt.example'
const JOSE = ['jose\u0301.mu\u0308ller@scatterholt.example', 'JOSÉ.MÜLLER@SCATTERHOLT.EXAMPLE']
const BO = ['Bo@MÜNCHEN.example', 'bo@XN--MNCHEN-3YA.EXAMPLE', 'bo@mu\u0308nchen.example']
const OURS: readonly (readonly [address: string, ...leaked: string[]])[] = [
  [ADA, ADA, 'ADA.Loam@Scatterholt.Example', ` ${ADA}\t`],
  ['José.Müller@scatterholt.example', ...JOSE],
  ['bo@münchen.example', 'bo@xn--mnchen-3ya.example', ...BO],
  ['cy@xn--mnchen-3ya.example', 'cy@münchen.example'],
  ['οδυσσευς@scatterholt.example', 'ΟΔΥΣΣΕΥΣ@scatterholt.example', 'οδυσσευσ@scatterholt.example'],
  ['nobody@scatterholt.example'],
]
/** Tags of the first; only --plus-tags takes them for hers. */
const TAGGED = ['ada.loam+shop@scatterholt.example', 'Ada.Loam+a+b@Scatterholt.example']
/** Others, some of them close. */
const OTHERS = [
  ...['ada.loam@scatterholt.example.org', 'xada.loam@scatterholt.example', 'ada.loam', '', 'a\u0000b'],
  ...['jose.muller@scatterholt.example', '"ada.loam"@scatterholt.example', 'strasse@x.example'],
  ...['zed@elsewhere.example', 'zoë@elsewhere.example'],
  ...Array.from({ length: 300 }, (_, i) => `person${i}.elsewhere@other.example`),
]
const WITH_ALIASES = ['alias.one@scatterholt.example', 'alias.two@scatterholt.example']

const ITEMS: readonly Planted[] = [
  ...OURS.flatMap(([, ...leaked]) => leaked),
  ...TAGGED,
  ...WITH_ALIASES,
  ...OTHERS,
].map((identity_name, i) => ({
  id: 1000 + i,
  identity_name,
  imported_at: `2024-0${1 + (i % 6)}-02T10:20:30.00000${i % 10}+00:00`,
  source_id: `leak_${i % 3}`,
  hash: [null, '', 'Sunflower-42-Sunflower', 'short', '5f4dcc3b5aa765d61d8327deb882cf99'][i % 5]!,
}))

const idsOf = (spellings: readonly string[]): readonly number[] =>
  ITEMS.filter(({ identity_name }) => spellings.includes(identity_name)).map(({ id }) => id)

/** What is expected of each person: key, address as in the directory, ids. Made from the table above alone. */
const EXPECTED = new Map<string, readonly [address: string, ids: readonly number[]]>([
  ...OURS.map(([address, ...leaked], i) => [`E${i}`, [address, idsOf(leaked)]] as const),
])

/** As an export of Entra ID, with two aliases of the last person. */
function directory(form = (address: string): string => address): string {
  const lines = OURS.map(([address], i) => `E${i},"Person, ${i}",${form(address)},`)
  const aliases = WITH_ALIASES.map((alias, i) =>
    form('') === '' ? `${i === 0 ? 'SMTP' : 'smtp'}:${alias}` : form(alias),
  )
  const more = `E9,"Nine ""9""",,"${aliases.join(';')};x500:/o=Exchange/cn=nine"`
  return ['employeeId,displayName,userPrincipalName,proxyAddresses', ...lines, more].join('\r\n')
}

type Row = Readonly<Record<string, string>>

const match = (here: Workspace, ...flags: string[]) =>
  here.call('match', '--directory', 'people.csv', ...flags)

async function matched(here: Workspace, ...flags: string[]): Promise<readonly Row[]> {
  const { stdout } = await exits(0, match(here, '--format', 'csv', ...flags))
  return parse(stdout, { columns: true }) as Row[]
}

function expectOurs(rows: readonly Row[], form = (address: string): string => address): void {
  const wanted = [...EXPECTED].flatMap(([key, [address, ids]]) =>
    ids.map((id) => `${key} ${form(address)} ${id}`),
  )
  const aliases = WITH_ALIASES.map((alias) => `E9 ${form(alias)} ${idsOf([alias])[0]}`)
  expect(rows.map(({ employeeId, identity, id }) => `${employeeId} ${identity} ${id}`).sort()).toEqual(
    [...wanted, ...aliases].sort(),
  )
}

const POLICIES = [
  { secret: 'plaintext', identity: 'keep', load: {} },
  {
    secret: 'redact',
    identity: 'keep',
    load: { format: 'csv', compression: 'gzip', csv: { escape_formulas: true } },
  },
  { secret: 'hmac', identity: 'hmac', load: { format: 'csv' } },
  { secret: 'partial', identity: 'keep', load: { engine: 'parquetjs-lite', shard_rows: 50 } },
  { secret: 'drop', identity: 'hmac', load: { partition_by: 'none' } },
] as const

describe.each(some(POLICIES, 3))(
  'secret: $secret, identity: $identity, $load',
  ({ secret, identity, load }) => {
    let here: Workspace
    beforeAll(async () => {
      here = await exportPlanted(ITEMS, {
        transform: { secret, identity, secret_facts: { policy: { min_length: 12, classes: 3 } } },
        load,
      })
      await writeFile(join(here.folder, 'people.csv'), directory())
    })

    it('each credential of a person is a row, with the secret as the data set holds it, and nobody else is anywhere', async () => {
      const ended = await exits(0, match(here, '--format', 'csv'))
      const rows = parse(ended.stdout, { columns: true }) as Row[]
      expectOurs(rows)
      const columns = 'employeeId,identity,id,domain,source_id,source_name,imported_at,hash_type'
      expect(ended.stdout.split('\n')[0]).toBe(
        `${columns}${secret === 'drop' ? '' : ',hash'},secret_kind,secret_meets_policy`,
      )
      const { stdout } = await here.call('query', 'SELECT * FROM credentials', '--csv')
      const stored = new Map((parse(stdout, { columns: true }) as Row[]).map((row) => [row.id, row]))
      for (const row of rows) {
        const { imported_at, ...rest } = row
        const item = ITEMS.find(({ id }) => String(id) === row.id)!
        const digits = 'engine' in load ? 23 : 26
        expect(imported_at).toBe(`${item.imported_at!.slice(0, digits).padEnd(26, '0')}Z`)
        for (const [name, value] of Object.entries(rest))
          if (!['employeeId', 'identity'].includes(name)) expect(value).toBe(stored.get(row.id)![name])
      }
      expect(ended.stderr).toMatch(
        /6 of 7 people: 14 credentials from 3 sources; [1-6] with a password that the policy allows/,
      )
      const others = OTHERS.filter(
        (name) => name.length > 8 && !name.startsWith('ada.loam') && !name.startsWith('jose'),
      )
      for (const other of others) expect(ended.stdout + ended.stderr).not.toContain(other)
      expect(await filesWith(here.folder, others, identity === 'keep' ? ['out/credentials'] : [])).toEqual([])
    })

    it('plus tags are theirs where it is asked for and can be known', async () => {
      if (identity === 'hmac') {
        await exits(2, match(here, '--plus-tags'), 'Digests do not show plus tags')
        return
      }
      const rows = await matched(here, '--plus-tags')
      const tagged = rows.filter(({ id }) => idsOf(TAGGED).includes(Number(id)))
      expect(tagged.map(({ employeeId, identity }) => [employeeId, identity])).toEqual(
        TAGGED.map(() => ['E0', OURS[0]![0]]),
      )
      expectOurs(rows.filter((row) => !tagged.includes(row)))
    })

    it('json has the same, and since leaves out what is older', async () => {
      const rows = await matched(here)
      const { stdout } = await match(here, '--format', 'json')
      const objects = JSON.parse(stdout) as Record<string, unknown>[]
      expect(objects.map(({ id, imported_at }) => [String(id), imported_at])).toEqual(
        rows.map(({ id, imported_at }) => [id, imported_at]),
      )
      const since = '2024-04-02T10:20:30.000003Z'
      const later = rows.filter(({ imported_at }) => imported_at! >= since)
      expect(later.length).toBeGreaterThan(0)
      expect(later.length).toBeLessThan(rows.length)
      const ids = (some: readonly Row[]) => some.map(({ id }) => id).sort()
      expect(ids(await matched(here, '--since', since))).toEqual(ids(later))
      // By person, those with a password that meets the policy first.
      const meets = new Set(
        rows.filter((row) => row.secret_meets_policy === 'true').map((row) => row.employeeId),
      )
      const people = [...new Set(rows.map(({ employeeId }) => employeeId!))]
      const inOrder = [...EXPECTED.keys(), 'E9'].filter((key) => people.includes(key))
      expect(people).toEqual([
        ...inOrder.filter((key) => meets.has(key)),
        ...inOrder.filter((key) => !meets.has(key)),
      ])
      expect(rows.map(({ employeeId }) => employeeId)).toEqual(
        people.flatMap((key) => rows.filter(({ employeeId }) => employeeId === key).map(() => key)),
      )
    })

    it.runIf(identity === 'hmac')('digests in place of addresses give the same', async () => {
      const digest = (address: string): string => {
        const [local = '', domain = ''] = address.split('@')
        const form = `${local.normalize('NFC').toLowerCase().replaceAll('ς', 'σ')}@${domain.replace('münchen', 'xn--mnchen-3ya')}`
        return createHmac('sha256', MASK_KEY).update(`identity:${form}`).digest('hex')
      }
      await writeFile(join(here.folder, 'people.csv'), directory(digest))
      expectOurs(await matched(here, '--digests'), digest)
      const keyless = here.with({ SPILLWAY_MASK_KEY: '' })
      expectOurs(await matched(keyless, '--digests'), digest)
      // Columns that `digest` makes tell their key.
      const own = createHmac('sha256', MASK_KEY).update('fingerprint').digest('hex').slice(0, 8)
      const table = (key: string) => `employeeId,identity_hmac_${key}\nE0,${digest(OURS[0]![0])}\n`
      await writeFile(join(here.folder, 'people.csv'), table(own))
      expect(new Set((await matched(keyless, '--digests')).map((row) => row.employeeId))).toEqual(
        new Set(['E0']),
      )
      await writeFile(join(here.folder, 'people.csv'), table('0123abcd'))
      await exits(2, match(keyless, '--digests'), 'The digests were made with another mask key')
    })
  },
)

it.runIf(THOROUGH)('a credential that several queries match is one', async () => {
  const here = await exportPlanted(ITEMS, { queries: 3 })
  await writeFile(join(here.folder, 'people.csv'), directory())
  expectOurs(await matched(here))
})

it('the table has a line for each person, and a file of the result is for its owner alone', async () => {
  const here = await exportPlanted(ITEMS)
  await writeFile(join(here.folder, 'people.csv'), directory())
  const { stdout } = await exits(0, match(here))
  expect(stdout).toMatch(
    /^employeeId +credentials +first +last +sources\nE0 +3 +2024-01-02 +2024-03-02 +Gorse Dump\n/,
  )
  expect(stdout.split('\n')).toHaveLength(1 + 6 + 1)
  const output = await exits(0, match(here, '--output', 'new/who.txt'))
  expect(output.stdout).toBe('')
  const file = join(here.folder, 'new/who.txt')
  expect(await readFile(file, 'utf8')).toBe(stdout)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})
