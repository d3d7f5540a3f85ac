import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { addressesIn, digestsIn } from '../../src/data-set/commands/match/identities.ts'
import { exits } from '../support/run-cli.ts'
import { cases } from '../support/thorough.ts'
import type { Workspace } from '../support/workspace.ts'
import { exportPlanted } from './planted.ts'

const A = 'p001@x.test'
const B = 'p002@x.test'

describe('a cell', () => {
  it.each([
    [`{SMTP:${A}, smtp:${B}}`, A, B],
    [`SMTP:${A}|X500:/o=Ex/ou=Group`, A],
    [`SPO:SPO_1@SPO_2+SMTP:${A}+smtp:${B}`, 'SPO_1@SPO_2', A, B],
    [`${A} ${B}`, A, B],
    [`'${A}'`, A],
    [`Ada <${A}>; "Bo" <mailto:${B}>`, A, B],
    [`SMTP: ${A}`, A],
    [`["${A}","${B}"]`, A, B],
    [`SIP:sip:${A}`, A],
    [`\u200esmtp:\u200b${A}\u202c`, A],
    ['ms-support@x.test, fax-desk@x.test', 'ms-support@x.test', 'fax-desk@x.test'],
    [
      'ada_home_x.test#EXT#@tenant.onmicrosoft.com',
      'ada_home@x.test',
      'ada_home_x.test#EXT#@tenant.onmicrosoft.com',
    ],
    [`\u201e${A}\u201c \u2018${B}\u2019`, A, B],
    [`E-Mail\uff1a${A} smtp :${B}`, A, B],
    ['ada\uff20x.test', 'ada@x.test'],
    ["o'neil+tag@x.test", "o'neil+tag@x.test"],
    ['"a b"@x.test', '"a b"@x.test'],
    [`zoë@☕.example;${A}`, 'zoë@☕.example', A],
  ])('%j', (cell, ...found) => {
    expect(addressesIn(cell)).toEqual({ found, unread: 0 })
  })

  it.each([
    ['System.String[]', 1],
    ['a@b@c', 2],
    [`${A}:secret, @x.test`, 2],
    ['{SMTP:p001@x.te…}', 1],
    ['CORP\\bo@x.test address=bo@x.test live.com#bo@x.test SMTP%3abo@x.test', 4],
    [' ', 0],
  ])('%j has what is no address', (cell, unread) => {
    expect(addressesIn(cell)).toEqual({ found: [], unread })
  })

  it('loses no @, whatever stands around it', () => {
    const unit = fc.constantFrom(...'@@ab.:;,|<>()[]{}"\'+# \n-_', 'smtp:', '#EXT#', '\u200b')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 24 }), (cell) => {
        const { found, unread } = addressesIn(cell)
        const all = cell.split('@').length - 1
        const guests = found.filter((each) => /^.+_[^_@]+#EXT#@/i.test(each)).length
        // A list that is cut off lacks one at least.
        const isCut = cell.includes('...')
        if (all > 0 && !(isCut && unread === 1)) expect(found.length - guests + unread).toBe(all)
        for (const each of found) expect(each.split('@')).toHaveLength(2)
      }),
      { numRuns: cases(20_000, 2000) },
    )
  })

  it('of digests', () => {
    const digest = '0aF9'.repeat(16)
    expect(digestsIn(`${digest}; ${digest} x`)).toEqual({
      found: [digest.toLowerCase(), digest.toLowerCase()],
      unread: 1,
    })
  })
})

describe('a directory', () => {
  let here: Workspace
  beforeAll(async () => {
    const names = [A, B, `\u202a${A.toUpperCase()}\u202c`, `mailto:${B}.`]
    here = await exportPlanted(names.map((identity_name, i) => ({ id: i + 1, identity_name })))
  })

  async function found(content: string, ...flags: string[]) {
    await writeFile(join(here.folder, 'd.csv'), content)
    const ended = await exits(0, here.call('match', '--directory', 'd.csv', '--format', 'csv', ...flags))
    const rows = parse(ended.stdout, { from: 2 }) as string[][]
    return { rows: rows.map(([key, , id]) => `${key} ${id}`), stderr: ended.stderr }
  }

  async function refused(content: string, why: string, ...flags: string[]): Promise<void> {
    await writeFile(join(here.folder, 'd.csv'), content)
    await exits(2, here.call('match', '--directory', 'd.csv', ...flags), why)
  }

  it('may end its lines in any way, each in another', async () => {
    for (const [first, rest] of [
      ['\r\n', '\n'],
      ['\n', '\r\n'],
      ['\r', '\r'],
    ]) {
      const { rows } = await found(`id,mail${first}1,${A}${rest}2,${B}${rest}`)
      expect(rows).toEqual(['1 1', '1 3', '2 2', '2 4'])
    }
  })

  it('with a quote that does not fit, or more cells than the header, is refused with the line', async () => {
    await refused(`id,mail\n1,"${A}"x\n2,${B}\n`, 'is no CSV (CSV_INVALID_CLOSING_QUOTE, line 2)')
    await refused(`id,mail\n1,${A}\n2,x"${B}"\n`, 'is no CSV (INVALID_OPENING_QUOTE, line 3)')
    await refused(
      `Name,proxyAddresses\nA,SMTP:${A},smtp:${B}\n`,
      'has more cells in line 2 than in its header',
    )
    await refused(`People of x.test\nid,mail\n1,${A}\n`, 'has more cells in line 2 than in its header')
  })

  it('names its format where columns cannot be told', async () => {
    await refused(`id|mail\n1|${A}\n`, 'seem to be separated by |')
    await refused(`# exported, today\nid,mail\n1,${A}\n`, 'Line 1 seems to be a comment')
    await refused(`1,${A}\n2,${B}\n`, 'has no header: its first line has addresses')
    await refused(`${'0a'.repeat(32)}\n`, 'It has no header: make it by `digest --column`', '--column', 'x')
    await refused('id,identity_hmac_0123abcd\n1,x\n', 'It holds digests: add --digests')
    await refused(`id,mail\n1,${A}\n2,"${B}\n3,x\n`, 'CSV_QUOTE_NOT_CLOSED, line 3')
    await refused([...`id,mail\n1,${A}\n`].join('\0'), 'UTF-16 without a byte order mark')
  })

  it('has all known columns read, and others with addresses named', async () => {
    const content = `id,mail,OtherMails,emails.0.address,Home Email,note\n1,,"[""${A}""]",,,\n2,,,${B},,\n3,,,,,ask ${A} and ${B}\n`
    const { rows, stderr } = await found(content)
    expect(rows).toEqual(['1 1', '1 3', '2 2', '2 4'])
    expect(stderr).toContain('column "note" has 2 addresses, not looked for: --column "note" reads it')
    expect(stderr).not.toContain(A)
    expect((await found(content, '--column', 'note')).stderr).toContain('column "OtherMails" has 1 address')
  })

  it('with a line for each alias has a person once; another line with the same key is named', async () => {
    const { rows, stderr } = await found(`id,name,mail\n7,Ada,${A}\n7,Ada,${B}\n7,Ada,SMTP:${A}\n`)
    expect(rows).toEqual(['7 1', '7 2', '7 3', '7 4'])
    expect(stderr).toContain('1 of 1 person: 4 credentials')
    expect(stderr).not.toContain('repeat')
    const google = await found(`First Name,Last Name,Email Address\nAda,Loam,${A}\nAda,Marsh,${B}\n`)
    expect(google.stderr).toContain('1 line repeats a key with different other cells')
    expect(google.stderr).toContain('line 3')
    await refused(
      `Blocked,Name,mail\nFalse,Ada,${A}\nFalse,Bo,${B}\nFalse,Cy,cy@x.test\n`,
      'The first column, "Blocked", does not tell people apart',
    )
    // Nobody has an empty key in common, and rows of nothing are nobody.
    const keyless = await found(`id,mail\n,${A}\n,${B}\n,\n`)
    expect(keyless.rows).toEqual([' 1', ' 3', ' 2', ' 4'])
    expect(keyless.stderr).toContain('2 of 2 people')
  })

  it('is not replaced by the result, and what a killed command left of a result goes with the next one', async () => {
    await refused(`id,mail\n1,${A}\n`, '--output names the directory of --directory', '--output', './d.csv')
    await refused(`id,mail\n1,${A}\n`, 'The result is no file', '--output', '.')
    const left = join(here.folder, '.who.csv.0123456789ab')
    await writeFile(left, A)
    await utimes(left, 1, 1)
    await found(`id,mail\n1,${A}\n`, '--output', 'who.csv')
    expect((await readdir(here.folder)).filter((name) => name.includes('who.csv'))).toEqual(['who.csv'])
  })
})

it('a key that a spreadsheet would evaluate follows escape_formulas', async () => {
  const here = await exportPlanted([{ id: 1, identity_name: A }], {
    load: { format: 'csv', csv: { escape_formulas: true } },
  })
  await writeFile(join(here.folder, 'd.csv'), `id,mail\n=1+2,${A}\n`)
  const { stdout } = await exits(0, here.call('match', '--directory', 'd.csv', '--format', 'csv'))
  expect(stdout.split('\n')[1]).toMatch(/^'=1\+2,/)
})
