import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { beforeAll, expect, it } from 'vitest'
import { Collector, inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { PIPELINE, type Workspace } from '../support/workspace.ts'
import { exportHere } from '../warehouse/in-process.ts'
import { trial } from './trial.ts'

/** A data set. The expected results of most queries follow from their SQL alone. */
let here: Workspace
beforeAll(async () => {
  here = await trial({}, { records: 5 })
  await exportHere(here)
})

const query = (...words: string[]) => here.call('query', ...words)

async function queryTo(stdout: Collector, ...words: string[]): Promise<number> {
  const { folder, env } = here
  const plain = { ...env, NO_COLOR: '1' }
  return (await inThisProcess(['query', PIPELINE, ...words], folder, plain, stdout)).code
}

it('--csv keeps null and the empty string apart, as exports do', async () => {
  const sql = `SELECT NULL AS "none", '' AS "empty", 'a"b,c' AS "text", true AS "yes", ['x', NULL] AS "list", 2.5 AS "number"`
  const { stdout } = await exits(0, query(sql, '--csv'))
  expect(stdout).toBe('none,empty,text,yes,list,number\n,"","a""b,c",true,"[""x"",null]",2.5\n')
})

it('on a terminal, CSV has no control sequences; in a file, values are unchanged', async () => {
  const sql = `SELECT chr(27) || '[2Jred' || chr(8238) || chr(155) AS "bad", chr(27) || 'x' AS "a${'\x1b'}[31mb"`
  const file = new Collector()
  expect(await queryTo(file, sql, '--csv')).toBe(0)
  expect(parse(file.text)).toEqual([
    ['bad', 'a\x1b[31mb'],
    ['\x1b[2Jred\u202e\x9b', '\x1bx'],
  ])
  const terminal = Object.assign(new Collector(), { isTTY: true, columns: 100 })
  expect(await queryTo(terminal, sql, '--csv')).toBe(0)
  expect(terminal.text).toBe('bad,a[31mb\n[2Jred,x\n')
})

it.each([
  { flag: '--json', first: '[{"n":0},\n{"n":1},\n' },
  { flag: '--csv', first: 'n\n0\n1\n' },
])('$flag prints rows as they arrive, and stops when the reader closes the pipe', async ({ flag, first }) => {
  const reader = new Impatient(200_000)
  // Far more than any buffer holds.
  expect(await queryTo(reader, 'SELECT range AS n FROM range(1000000000000)', flag)).toBe(0)
  expect(reader.text.startsWith(first)).toBe(true)
})

it('--json and --csv print every row of results of many batches', async () => {
  const sql = 'SELECT range AS n FROM range(5000)'
  const json = await query(sql, '--json')
  expect(JSON.parse(json.stdout)).toEqual(Array.from({ length: 5000 }, (_, n) => ({ n })))
  const csv = await query(sql, '--csv')
  expect(csv.stdout).toBe(`n\n${Array.from({ length: 5000 }, (_, n) => `${n}\n`).join('')}`)
  const none = await query(`${sql} LIMIT 0`, '--json')
  expect(none.stdout).toBe('[]\n')
})

it('SQL may begin with a comment, after -- or in a file', async () => {
  const sql = '-- how many\nSELECT 7 AS n;\n-- end'
  await writeFile(join(here.folder, 'one.sql'), sql)
  for (const words of [
    ['--', sql],
    ['-f', 'one.sql'],
    ['--file', 'one.sql'],
  ])
    expect(await query('--csv', ...words)).toMatchObject({ code: 0, stdout: 'n\n7\n' })
  await exits(2, query('SELECT 1', '-f', 'one.sql'), 'given twice')
  await exits(2, query('-f', 'none.sql'), /The SQL cannot be read \(ENOENT\).*none.sql/)
})

const VALUES = [
  ["DATE 'infinity'", 'infinity'],
  ["DATE '0044-03-15 (BC)'", '0044-03-15 (BC)'],
  ["TIMESTAMP_NS 'infinity'", 'infinity'],
  ["TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", '2024-01-01 00:00:00.123456789'],
  ["[[TIMESTAMP_S '-infinity']]", [['-infinity']]],
  ["[chr(65279) || 'a']", ['\uFEFFa']],
  ['9007199254740993', '9007199254740993'],
] as const

it('values are printed as DuckDB writes them, and with every character; columns of one name stay apart', async () => {
  const columns = VALUES.map(([value]) => `${value} AS v`).join(', ')
  const { stdout } = await exits(0, query(`SELECT ${columns}`, '--json'))
  const names = VALUES.map(([, text], i) => [i === 0 ? 'v' : `v:${i}`, text])
  expect(JSON.parse(stdout)).toEqual([Object.fromEntries(names)])
})

/** A reader that closes its end, as `head` does. */
class Impatient extends Collector {
  constructor(readonly most: number) {
    super()
  }

  override _write(chunk: Buffer, encoding: string, done: (error?: Error) => void): void {
    if (this.text.length <= this.most) super._write(chunk, encoding, done)
    else done(Object.assign(new Error('gone'), { code: 'EPIPE' }))
  }
}
