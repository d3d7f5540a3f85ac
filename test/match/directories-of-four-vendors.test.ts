import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { parse } from 'csv-parse/sync'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { CLI, type Ended, exits } from '../support/run-cli.ts'
import { PIPELINE, type Workspace } from '../support/workspace.ts'
import { exportPlanted, MASK_KEY } from './planted.ts'

const ADDRESSES = [
  'ada.loam@scatterholt.example',
  'bo@quillmere.example',
  'alias@scatterholt.example',
] as const
const [ADA, BO, ALIAS] = ADDRESSES

let here: Workspace
beforeAll(async () => {
  const names = [...ADDRESSES, 'cy@other.example']
  here = await exportPlanted(names.map((identity_name, i) => ({ id: i + 1, identity_name })))
})

async function matchIn(content: string | Buffer, ...flags: string[]): Promise<Ended> {
  await writeFile(join(here.folder, 'd.csv'), content)
  return here.call('match', '--directory', 'd.csv', '--format', 'csv', ...flags)
}

async function found(content: string | Buffer, ...flags: string[]): Promise<readonly unknown[]> {
  const { stdout } = await exits(0, matchIn(content, ...flags))
  return (parse(stdout, { from: 2 }) as string[][]).map(([key, identity, id]) => [key, identity, Number(id)])
}

// In the shape of each vendor's own export, with made-up people.
const ENTRA = `id,displayName,userPrincipalName,mail,proxyAddresses
0d1,"Loam, Ada",ADA.LOAM@scatterholt.example,Ada.Loam@scatterholt.example,SMTP:Ada.Loam@scatterholt.example;smtp:alias@scatterholt.example;x500:/o=Ex/ou=Group
0d2,Bo,bo_quillmere.example#EXT#@scatterholt.example,bo@quillmere.example,
`
const ACTIVE_DIRECTORY = `#TYPE Selected.Microsoft.ActiveDirectory.Management.ADUser\r
"SamAccountName","Name","mail","DistinguishedName"\r
"aloam","Ada ""the"" Loam","ada.loam@scatterholt.example","CN=Ada,OU=People,DC=scatterholt"\r
"svc","Service","",""\r
`
const OKTA = `login;firstName;lastName;email;secondEmail
ada.loam@scatterholt.example;Ada;Loam;ada.loam@scatterholt.example;
bo@quillmere.example;Bo;;bo@quillmere.example;
`
const GOOGLE = `First Name [Required],Last Name [Required],Email Address [Required],Password [Required],Status [READ ONLY]
Ada,Loam,Ada.Loam@Scatterholt.example,****,Active
`

const utf16 = (text: string, isBig = false): Buffer => {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le')
  return isBig ? bytes.swap16() : bytes
}

describe('exports in the shape of', () => {
  it('Entra ID: addresses and aliases, of which each spelling is a person once', async () => {
    const rows = [
      ['0d1', 'ADA.LOAM@scatterholt.example', 1],
      ['0d1', 'alias@scatterholt.example', 3],
      ['0d2', 'bo@quillmere.example', 2],
    ]
    expect(await found(ENTRA)).toEqual(rows)
    expect(await found(Buffer.from(`\ufeff${ENTRA}`))).toEqual(rows)
  })

  it('Active Directory, by PowerShell in UTF-16 and with its own first line', async () => {
    const rows = [['aloam', 'ada.loam@scatterholt.example', 1]]
    expect(await found(utf16(ACTIVE_DIRECTORY))).toEqual(rows)
    expect(await found(utf16(ACTIVE_DIRECTORY, true))).toEqual(rows)
    const { stderr } = await matchIn(ACTIVE_DIRECTORY)
    expect(stderr).toContain('1 person without an address')
    expect(stderr).toContain('1 of 2 people: 1 credential from 1 source')
  })

  it('Okta, with semicolons; another key, and a column by name', async () => {
    expect(await found(OKTA, '--key', 'firstName')).toEqual([
      ['Ada', 'ada.loam@scatterholt.example', 1],
      ['Bo', 'bo@quillmere.example', 2],
    ])
    expect(await found('a;b\nx;cy@other.example\n', '--column', 'b')).toEqual([['x', 'cy@other.example', 4]])
  })

  it('Google Workspace', async () => {
    expect(await found(GOOGLE)).toEqual([['Ada', 'Ada.Loam@Scatterholt.example', 1]])
  })
})

describe('what is no directory is refused, or said', () => {
  it.each([
    ['', 'The file is empty (d.csv)'],
    ['mail\n', 'The directory has no people'],
    [
      'a,b\n1,x@y.example\n',
      'No column is known to hold addresses (d.csv). Name one of "a", "b" with --column.',
    ],
    [Buffer.from([0x61, 0xff, 0x0a]), 'neither UTF-8 nor UTF-16'],
    ['mail,b\n"cy@other.example,1\n', 'is no CSV (CSV_QUOTE_NOT_CLOSED'],
  ])('%#', async (content, why) => {
    expect((await exits(2, matchIn(content), why)).stdout).toBe('')
  })

  it('columns and files that are not there, a date that is none, digests where rows have none', async () => {
    await exits(2, matchIn(OKTA, '--column', 'mial'), 'There is no column "mial"')
    await exits(2, matchIn(OKTA, '--key', 'no'), 'There is no column "no"')
    await exits(2, matchIn(OKTA, '--since', 'May'), '--since: expected a date')
    await exits(2, matchIn(OKTA, '--digests'), 'goes with transform.identity: hmac')
    const missing = here.call('match', '--directory', 'none.csv')
    await exits(2, missing, 'The directory cannot be read: ENOENT (none.csv)')
    await exits(2, matchIn(OKTA, '--output', 'out/who.csv'), 'would lie in the folder of the data set')
  })

  it('cells that are no address are counted by their lines, and the others are found', async () => {
    const { stdout, stderr } = await exits(
      0,
      matchIn('k,mail\n1,nobody\n"2\n3",cy@other.example\n4,a@b@c\n5,\n'),
    )
    expect(stdout.split('\n')[1]).toBe('"2')
    expect(stderr).toContain('2 cells with something that is no address, not looked for: lines 2, 5')
    expect(stderr).toContain('3 people without an address')
    expect(stderr).not.toContain('nobody')
  })

  it('no identities to find anybody by, no key, another key', async () => {
    for (const [identity, key, why] of [
      ['drop', MASK_KEY, 'holds no identities'],
      ['hmac', '', 'SPILLWAY_MASK_KEY is not set, or empty'],
      ['hmac', `${MASK_KEY}, another`, 'the mask key is not the one'],
    ] as const) {
      const made = await exportPlanted([{ id: 1, identity_name: ADA }], { transform: { identity } })
      await writeFile(join(made.folder, 'd.csv'), OKTA)
      const keyed = made.with({ SPILLWAY_MASK_KEY: key })
      await exits(2, keyed.call('match', '--directory', 'd.csv'), why)
    }
  })
})

/** As the tenant names it. */
const GUEST = 'bo_quillmere.example#ext#@scatterholt.example'

describe('digest', () => {
  const COLUMN = `identity_hmac_${createHmac('sha256', MASK_KEY).update('fingerprint').digest('hex').slice(0, 8)}`
  const digestOf = (text: string): string =>
    createHmac('sha256', MASK_KEY).update(`identity:${text}`).digest('hex')
  const keyed = async (key: string, input: string | Buffer, ...flags: string[]) => {
    const stdin = vi.spyOn(process, 'stdin', 'get')
    stdin.mockReturnValue(Readable.from([Buffer.from(input)]) as unknown as typeof process.stdin)
    const ended = await inThisProcess(['digest', ...flags], here.folder, { SPILLWAY_MASK_KEY: key })
    stdin.mockRestore()
    return { ...ended, status: ended.code }
  }
  const digest = (input: string | Buffer, ...flags: string[]) => keyed(MASK_KEY, input, ...flags)

  it('writes a digest for each line, of any spelling', () => {
    const env = { PATH: process.env.PATH ?? '', SPILLWAY_MASK_KEY: MASK_KEY }
    const input = 'Ada@X.example\r\n\n jdoe \nzoe\u0308@m\u00fcnchen.example'
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, 'digest'], {
      ...{ input, env },
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    const forms = ['ada@x.example', null, 'jdoe', 'zo\u00eb@xn--mnchen-3ya.example']
    expect(stdout).toBe(forms.map((form) => `${form === null ? '' : digestOf(form)}\n`).join(''))
  })

  it('writes the key and digests of people, and nothing else of a row', async () => {
    const table =
      'name,mail,note\nAda,{SMTP:a@x.example; smtp:b@x.example},call c@x.example\nBo,System.String[],\n'
    const { status, stdout, stderr } = await digest(table, '--column', 'mail')
    expect(status).toBe(0)
    expect(stdout).toBe(`name,${COLUMN}\nAda,${digestOf('a@x.example')};${digestOf('b@x.example')}\nBo,\n`)
    expect(stderr).toContain('1 cell with something that is no address, not looked for: line 3')
    expect(stderr).toContain('column "note" has 1 address, not looked for: --column "note" reads it')
  })

  it('reads all known columns with --key alone, and refuses a key with addresses', async () => {
    const { status, stdout } = await digest(utf16(ENTRA), '--key', 'id')
    expect(status).toBe(0)
    const rows = [`0d1,${digestOf(ADA)};${digestOf(ALIAS)}`, `0d2,${digestOf(BO)};${digestOf(GUEST)}`]
    expect(stdout).toBe(`id,${COLUMN}\n${rows.join('\n')}\n`)
    const refused = await digest(utf16(ENTRA), '--key', 'mail')
    expect([refused.status, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('The key column "mail" holds an address in line 2')
    const guest = await digest('nick,mail\nada_x.example#EXT#,a@x.example\n', '--column', 'mail')
    expect([guest.status, guest.stdout]).toEqual([2, ''])
    const shifted = await digest('name,mail\nDoe, John,p003@x.example\n', '--column', 'mail')
    expect([shifted.status, shifted.stdout]).toEqual([2, ''])
    expect(shifted.stderr).toContain('more cells in line 2 than in its header')
    expect(refused.stderr + shifted.stderr).not.toMatch(/ada|p003/i)
  })

  it('of lines: each identity on its own, and what is none is named', async () => {
    const lines = 'SMTP:a@x.example\n{SMTP:\nSystem.String[]\n<none>\nBo <b@x.example>, c@x.example\njdoe'
    const { status, stdout, stderr } = await digest(lines)
    expect(status).toBe(0)
    const expected = ['a@x.example', null, null, null, 'b@x.example', 'c@x.example', 'jdoe']
    expect(stdout).toBe(expected.map((form) => `${form === null ? '' : digestOf(form)}\n`).join(''))
    expect(stderr).toContain('what is no identity has no digest: lines 2, 3, 4')
    expect(stderr).toContain('each of several identities has a line of its own: line 5')
  })

  it('an identity among the arguments is not repeated', async () => {
    for (const words of [['digest'], ['forget', PIPELINE]]) {
      const { stderr } = await exits(2, here.cli(...words, 'ada@x.example'), 'which is not repeated here')
      expect(stderr).not.toContain('ada@')
    }
  })

  it('needs a key of its own length', async () => {
    const { status, stderr } = await keyed('short', 'a\n')
    expect([status, stderr]).toEqual([2, expect.stringContaining('masking key in SPILLWAY_MASK_KEY')])
    expect((await digest(Buffer.from([0xff, 0x41]))).status).toBe(2)
    const wide = await digest(Buffer.from('ada@x.example', 'utf16le'))
    expect(wide.stderr).toContain('UTF-16 without a byte order mark')
    expect([(await digest('')).status, (await digest('\n')).status]).toEqual([2, 2])
  })
})
