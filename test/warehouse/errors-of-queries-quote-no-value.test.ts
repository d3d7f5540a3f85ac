import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'
import { exportHere, queryHere, refusalOf } from './in-process.ts'

async function exported() {
  const here = await newWorkspace({}, { records: 5 })
  await exportHere(here)
  const refusal = (sql: string) => refusalOf(here, sql)
  const { rows } = await queryHere(here, 'SELECT DISTINCT identity_name FROM credentials')
  return { here, refusal, names: rows.map(([name]) => String(name)) }
}

it('an error of DuckDB about a row shows its kind and the position in the SQL, never the value', async () => {
  const { refusal, names } = await exported()
  expect(names.length).toBeGreaterThan(0)
  const statements: Readonly<Record<string, RegExp>> = {
    'SELECT identity_name::INT FROM credentials': /Conversion Error at character 21 of the SQL/,
    'SELECT error(identity_name) FROM credentials': /Invalid Input Error/,
    "SELECT strptime(identity_name, '%Y') FROM credentials": /Invalid Input Error/,
    "SELECT regexp_matches('a', identity_name || '(') FROM credentials": /Invalid Input Error/,
    "SELECT json_extract(identity_name, '$') FROM credentials": /Invalid Input Error/,
    'SELECT id * 9223372036854775807 FROM credentials WHERE id > 1': /Out of Range Error/,
    'SELECT date_part(identity_name, now()) FROM credentials': /Conversion Error/,
  }
  for (const [sql, told] of Object.entries(statements)) {
    const error = await refusal(sql)
    expect(error.kind).toBe('config')
    expect(error.message).toMatch(told)
    // Some programs print the cause as well.
    for (const name of names) expect(inspect(error)).not.toContain(name)
  }
})

it('an error in the SQL shows its kind, its position and similar names', async () => {
  const { refusal } = await exported()
  const statements: Readonly<Record<string, RegExp>> = {
    'SELECT identity FROM credentials':
      /Binder Error at character 8 of the SQL; similar names: .*identity_name/,
    'SELECT 1 FROM credential': /Catalog Error at character 15 of the SQL; similar names: credentials/,
    'SELECT * FRM credentials': /Parser Error at character 14 of the SQL/,
    'SELECT id, count(*) FROM credentials': /Binder Error at character 8 of the SQL/,
  }
  for (const [sql, told] of Object.entries(statements)) expect((await refusal(sql)).message).toMatch(told)
})

it('texts of the SQL are not repeated, however they are quoted', async () => {
  const { refusal } = await exported()
  const statements = [
    'SELECT * FROM credentials WHERE hash = "hunter2"',
    'SELECT * FROM credentials WHERE hash = "Hunter2" AND id = 1',
    "SELECT * FROM credentials WHERE hash = 'hunter2",
    "SELECT * FROM credentials WHERE hash = 'x' 'hunter2' FRM",
    "SELECT json_extract(hash, '$.hunter2..') FROM credentials",
    "SELECT COLUMNS('hunter2') FROM credentials",
    "SELECT COLUMNS('hunter2(') FROM credentials",
    "SELECT current_setting('hunter2')",
    'SELECT * FROM credentials WHERE hash = $$hunter2$$ AND',
    "SELECT * FROM 'hunter2'",
    "SELECT * -- it's\nFROM 'hunter2' x",
    "SELECT * FROM credentials WHERE hash = E'\\x68unter2' AND",
    'SELECT "it""s hunter2" FROM credentials',
  ]
  for (const sql of THOROUGH ? statements : some(statements, 7)) {
    const { message } = await refusal(sql)
    expect(message, sql).toMatch(/^(?:DuckDB does not|Only SELECT)/)
    expect(message.toLowerCase(), sql).not.toContain('hunter2')
  }
})

it('stderr contains no value, at any level', async () => {
  const { here, names } = await exported()
  const sql = 'SELECT identity_name::INT FROM credentials'
  const { code, stderr } = await here.call('query', sql, '--log-level', 'debug')
  expect(code).toBe(2)
  expect(stderr).toContain('Conversion Error')
  for (const name of names) expect(stderr).not.toContain(name)
})
