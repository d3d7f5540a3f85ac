import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { some } from '../support/thorough.ts'
import { monthsUntil } from '../support/workspace.ts'
import { loadHere } from './in-process.ts'
import { newTarget, type TargetKind } from './targets.ts'

async function loaded(kind: TargetKind) {
  const extract = { domains: ['quillmere.net'], windows: monthsUntil('2024-02-01') }
  const here = await exportedWorkspace({ extract })
  const target = await newTarget(kind, here)
  const { rows } = await loadHere(here, target)
  const countOf = async (name: string): Promise<number> =>
    Number((await target.rows(`select count(*) as n from ${name}`))[0]?.n)
  return { here, target, rows, countOf }
}

it('a renamed column of the table is added again with --evolve, and its view has both', async () => {
  const { here, target, rows, countOf } = await loaded('postgres')
  await target.change('alter table credentials rename column hash to digest')
  await expect(loadHere(here, target)).rejects.toThrow(/hash text is missing \(--evolve adds it\)/)
  await loadHere(here, target, 'append', { evolve: true })
  expect(await target.rows('select hash, digest from credentials_latest')).toHaveLength(rows)
  expect(await countOf('credentials')).toBe(rows)
})

it('a view on which others depend is named, with the way out', async () => {
  const { here, target } = await loaded('postgres')
  await target.change(
    'drop view credentials_latest; create view credentials_latest as select 1 as a; create view mine as select a from credentials_latest',
  )
  await expect(loadHere(here, target)).rejects.toMatchObject({
    kind: 'config',
    where: '"public"."credentials_latest"',
    next: expect.stringContaining('DROP VIEW "public"."credentials_latest" CASCADE'),
  })
  expect(await target.rows('select a from mine')).toHaveLength(1)
  await target.change('drop view credentials_latest cascade')
  expect(await loadHere(here, target)).toMatchObject({ rows: 0 })
})

const taken = [
  ['postgres', 'table', 'create table credentials_latest (a int)'],
  ['postgres', 'object of another kind', 'create materialized view credentials_latest as select 1 as a'],
  ['duckdb', 'table', 'create table Credentials_Latest (a int)'],
] as const
it.each(some(taken, 1))('%s: a %s with the name of a view is named', async (kind, found, change) => {
  const { here, target, rows, countOf } = await loaded(kind)
  await target.change('drop view credentials_latest')
  await target.change(change)
  await expect(loadHere(here, target)).rejects.toMatchObject({
    kind: 'config',
    what: `The load needs the name for a view, and it is that of a ${found}`,
    where: expect.stringMatching(/^\w+\.credentials_latest$/),
  })
  expect(await countOf('credentials')).toBe(rows)
})

it.each(some(['duckdb', 'postgres'] as const, 1))('%s: rows are not loaded into a view', async (kind) => {
  const { here, target } = await loaded(kind)
  await expect(loadHere(here, target, 'append', { table: 'credentials_latest' })).rejects.toMatchObject({
    kind: 'config',
    what: 'The load needs the name for a table, and it is that of a view',
  })
})

it('a load that finds everything in place does not change the DuckDB file', async () => {
  const { here } = await loaded('duckdb')
  const read = () => readFile(join(here.folder, 'leaks.db'))
  const before = await read()
  expect(await loadHere(here, { url: 'duckdb:leaks.db' })).toMatchObject({ rows: 0 })
  expect((await read()).equals(before)).toBe(true)
})
