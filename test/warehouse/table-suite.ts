import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { systemClock } from '../../src/core/index.ts'
import type { LoadOptions } from '../../src/data-set/index.ts'
import { DuckdbWarehouse } from '../../src/warehouse/index.ts'
import { refusal } from '../disk/errors.ts'
import { expectedOfDomains, type Row } from '../support/rows.ts'
import { startSandbox } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, SMALL, type Workspace } from '../support/workspace.ts'
import { columnsIn } from './following.ts'
import { exportHere, loadHere } from './in-process.ts'
import { exportedBeside, holdsAll, isHonest } from './ledger.ts'
import { columnOf, loadValues, postgresAt, tableWith } from './load-values.ts'
import { newTarget, type TargetKind, type TestTarget } from './targets.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-03-01' }
const partsWith = (parts: PipelineParts = {}): PipelineParts => ({
  ...parts,
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 10, ...parts.extract },
})

type Flags = Partial<Pick<LoadOptions, 'mode' | 'evolve' | 'supersede'>>

/** What a load has done; of other data sets in the table their ids. */
async function load(here: Workspace, target: TestTarget, { mode, ...flags }: Flags = {}) {
  const { shards, removed, rows, supersededRows, others } = await loadHere(here, target, mode, flags)
  return { shards, removed, rows, supersededRows, others: others.map(({ id }) => id) }
}

/** The message of a load that is refused with this exit code. */
async function refused(code: number, here: Workspace, target: TestTarget, { mode, ...flags }: Flags = {}) {
  const error = await refusal(loadHere(here, target, mode, flags))
  expect(exitCodeOf(error, null), error.message).toBe(code)
  return error.message
}

/** The rows of a data set in its table and in the ledger. */
async function own(here: Workspace): Promise<{ readonly rows: string; readonly ledger: string }> {
  const { data_set_id: id, resource } = await here.manifest()
  return {
    rows: `${resource} where spillway_data_set = '${id}'`,
    ledger: `spillway_loads where data_set = '${id}'`,
  }
}

/** The rows as the tests of files compare them: integers and microseconds as strings. */
async function tableRows(here: Workspace, target: TestTarget, kind: TargetKind): Promise<Row[]> {
  const micros = (name: string): string =>
    kind === 'duckdb' ? `epoch_us(${name})` : `trunc(extract(epoch from ${name}) * 1000000)::bigint`
  const terms = (await columnsIn(here)).map((name) => {
    if (name.endsWith('_at')) return `${micros(name)}::text as ${name}`
    return name === 'id' ? 'id::text as id' : name
  })
  return (await target.rows(`select ${terms.join(', ')} from ${(await own(here)).rows}`)) as Row[]
}

/** As sorted lines; with U+FFFD for NUL, as in PostgreSQL. */
function lines(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(row).replaceAll('\\u0000', '\uFFFD')).sort()
}

async function count(target: TestTarget, query: string): Promise<number> {
  const [row] = await target.rows(`select count(*) as n from ${query}`)
  return Number(row?.n)
}

/** All cases in thorough runs; by default one for each database, a different one for each. */
function oneFor<T>(kind: TargetKind, all: readonly T[]): readonly T[] {
  return some(kind === 'duckdb' ? all : all.toReversed(), 1)
}

/** The tests of every database; each has a test file of its own, so that they run side by side. */
export function tablesHoldWhatIsExported(kind: TargetKind): void {
  const loaded = (kind: TargetKind, parts: PipelineParts = partsWith()) => exportedBeside(kind, parts)

  /** The table has these rows of the data set, each once. */
  const expectRows = async (
    here: Workspace,
    target: TestTarget,
    rows = expectedOfDomains(here.sandbox, DOMAINS, RANGE),
  ): Promise<void> => expect(lines(await tableRows(here, target, kind))).toEqual(lines(rows))

  // Where no statement is the dialect's own, one target is enough by default.
  const ofAny = it.runIf(THOROUGH || kind === 'duckdb')

  const formats = [
    { for: 'postgres', load: { format: 'parquet' } },
    { for: 'postgres', load: { format: 'csv', compression: 'gzip', partition_by: 'none' } },
    { for: 'duckdb', load: { format: 'csv' } },
    { for: 'duckdb', load: { format: 'parquet', partition_by: 'window', shard_rows: 30 } },
  ] as const
  // DuckDB reads the shards for both, so each format is tested with one of them by default.
  const usual = formats.filter((format) => format.for === kind).slice(0, 1)
  it.each(THOROUGH ? formats : usual)(
    'the table holds every row once, with its shard, from $load',
    async ({ load: settings }) => {
      const { here, target, neighbour } = await loaded(kind, partsWith({ load: settings }))
      const summary = await load(here, target)
      const expected = expectedOfDomains(here.sandbox, DOMAINS, RANGE)
      const { shards } = await here.manifest()
      expect(summary).toEqual({
        shards: { loaded: shards.length, skipped: 0, replaced: 0 },
        removed: 0,
        rows: expected.length,
        supersededRows: 0,
        others: [neighbour.id],
      })
      await expectRows(here, target, expected)
      const labels = await target.rows(
        `select distinct spillway_shard as p from ${(await own(here)).rows} order by 1`,
      )
      expect(labels.map(({ p }) => p)).toEqual(shards.map(({ path }) => path))
      const entries = await target.rows(
        `select shard, partitions, pipeline from ${(await own(here)).ledger} order by shard`,
      )
      expect(entries).toEqual(
        shards.map(({ path, partitions }) => ({ shard: path, partitions, pipeline: 'trial' })),
      )

      expect(await loadHere(here, target)).toMatchObject({
        shards: { loaded: 0, skipped: shards.length, replaced: 0 },
        rows: 0,
      })
      await holdsAll(here, target)
      expect(await count(target, 'credentials')).toBe(expected.length + neighbour.rows)
      const distinct = async (column: string) =>
        Number((await target.rows(`select count(distinct ${column}) as n from credentials`))[0]?.n)
      const [sum] = await target.rows('select sum(credentials) as n from credentials_by_domain_month')
      expect(Number(sum?.n)).toBe(await distinct('id'))
      expect(await count(target, 'credentials_latest')).toBe(await distinct('id'))
      expect(await count(target, 'credentials_by_source')).toBe(await distinct('source_id'))
      await neighbour.isUnchanged(true)
    },
  )

  const folders = [
    { partition_by: ['query', 'window'] },
    { partition_by: 'none' },
    ...(kind === 'postgres' ? [] : [{ partition_by: 'query' }]),
  ]
  it.each(oneFor(kind, folders))(
    'rows of a partition that is exported again replace its former rows: $partition_by',
    async (settings) => {
      const { here, target, neighbour } = await loaded(kind, partsWith({ load: settings }))
      await loadHere(here, target)
      // The service has other credentials now, but only partitions that are exported again can show them.
      const later = await startSandbox({ ...SMALL, seed: 'later', records: 90 })
      Object.assign(here.env, { SPILLWAY_BASE_URL: later.baseUrl, SPILLWAY_TOKEN: later.token })
      await exportHere(here, ['domain.quillmere.net'])
      expect((await load(here, target)).shards.replaced).toBeGreaterThan(0)
      const old = settings.partition_by === 'none' ? later : here.sandbox
      const expected = [
        ...expectedOfDomains(old, ['scatterholt.com'], RANGE),
        ...expectedOfDomains(later, ['quillmere.net'], RANGE),
      ]
      await expectRows(here, target, expected)
      const { shards } = await here.manifest()
      expect(await count(target, (await own(here)).ledger)).toBe(shards.length)
      await neighbour.isUnchanged()
    },
  )

  ofAny(
    'a shard with changed bytes, or a missing one, is refused, with what comes after it; what came before it is loaded',
    async () => {
      const { here, target, neighbour } = await loaded(kind)
      const { shards } = await here.manifest()
      const { rows, ledger } = await own(here)
      for (const [index, content] of [
        [0, 'something else'],
        [shards.length - 1, 'something else'],
        [shards.length - 1, null],
      ] as const) {
        const file = join(here.output, shards[index]!.path)
        const bytes = await readFile(file)
        await (content === null ? rm(file) : writeFile(file, content))
        expect(await refused(1, here, target)).toContain(shards[index]!.path)
        expect(await count(target, ledger)).toBe(index)
        const before = shards.slice(0, index).reduce((sum, each) => sum + each.rows, 0)
        expect(await count(target, rows)).toBe(before)
        await writeFile(file, bytes)
      }
      await load(here, target)
      await expectRows(here, target)
      await neighbour.isUnchanged()
    },
  )

  ofAny('a shard with other rows than the manifest counts is refused; none is loaded', async () => {
    const { here, target, neighbour } = await loaded(kind)
    const path = join(here.output, '_manifest.json')
    const manifest = JSON.parse(await readFile(path, 'utf8'))
    const last = manifest.shards.at(-1)
    last.rows++
    await writeFile(path, JSON.stringify(manifest))
    const { rows } = await own(here)
    for (const mode of ['append', 'upsert'] as const) {
      expect(await refused(1, here, target, { mode })).toContain(
        `The shard holds ${last.rows - 1} rows instead of ${last.rows} (${last.path})`,
      )
      expect(await count(target, rows)).toBe(manifest.totals.rows - last.rows + 1)
    }
    await neighbour.isUnchanged()
  })

  it('a table that does not fit is refused with the difference, and gains columns with --evolve', async () => {
    const { here, target, neighbour } = await loaded(kind)
    await loadHere(here, target)
    const narrow = await own(here)
    const { data_set_id: id } = await here.manifest()
    const rows = await count(target, narrow.rows)
    // Of the same name, as the docs recommend for a wider export.
    await here.write(partsWith({ extract: { include: ['known_password_id'] }, load: { path: 'wider' } }))
    await exportHere(here)
    expect(await refused(2, here, target)).toMatch(/known_password_id .* is missing \(--evolve adds it\)/)
    // The one that was loaded last comes first.
    const { others } = await load(here, target, { evolve: true, mode: 'replace' })
    expect(others).toEqual([id, neighbour.id])
    expect(await count(target, 'credentials where known_password_id is not null')).toBeGreaterThan(0)
    expect(await count(target, narrow.rows)).toBe(rows)
    await neighbour.isUnchanged(true)
  })

  ofAny('reports are loaded into a table of their own', async () => {
    const { here, target, neighbour } = await loaded(kind, { extract: { resource: 'reports', ids: [1, 2] } })
    await load(here, target)
    const { rows } = await own(here)
    const [shard] = (await here.manifest()).shards
    const row = { spillway_shard: shard!.path }
    expect(await target.rows(`select id, spillway_shard from ${rows} order by id`)).toMatchObject([row, row])
    // Of each report the last version, whichever data set has it.
    await target.change(
      `update reports set updated_at = case when id = 1 then timestamptz '2100-01-01 00:00:00+00' end where spillway_data_set = '${neighbour.id}'`,
    )
    const { data_set_id: id } = await here.manifest()
    expect(await target.rows('select spillway_data_set as d from reports_latest order by id')).toEqual([
      { d: neighbour.id },
      { d: id },
    ])
    await neighbour.isUnchanged()
  })

  it.each(oneFor(kind, ['append', 'upsert', 'replace'] as const))(
    'with %s --supersede takes the place of another data set, which is not loaded again but by --supersede',
    async (mode) => {
      const { here, target, neighbour } = await loaded(kind)
      const { data_set_id: id, totals, shards } = await here.manifest()
      for (const [supersede, says] of [
        [id, 'cannot supersede itself'],
        ['an id', 'has no data set "an id"'],
      ] as const) {
        const message = await refused(2, here, target, { mode, supersede })
        expect(message).toContain(says)
        expect(message).toContain(`Name one that is there: ${neighbour.id} (trial)`)
      }
      const flags = { mode, supersede: neighbour.id }
      // All of it, or nothing.
      const last = join(here.output, shards.at(-1)!.path)
      const bytes = await readFile(last)
      await writeFile(last, 'something else')
      await refused(1, here, target, flags)
      await writeFile(last, bytes)
      expect(await count(target, (await own(here)).rows)).toBe(0)
      await neighbour.isUnchanged(true)

      const done = { supersededRows: neighbour.rows, rows: totals.rows, others: [] }
      expect(await load(here, target, flags)).toMatchObject(done)
      const isInPlace = async (): Promise<void> => {
        await expectRows(here, target)
        expect(await count(target, 'credentials')).toBe(totals.rows)
      }
      await isInPlace()
      const again = { supersededRows: 0, rows: 0, shards: { skipped: shards.length } }
      expect(await load(here, target, flags)).toMatchObject(again)
      for (const each of ['append', 'upsert', 'replace'] as const) {
        const message = await refused(2, neighbour.workspace, neighbour.target, { mode: each })
        expect(message).toContain(`--supersede ${id}`)
        expect(await load(here, target, { mode: each })).toMatchObject({ rows: 0, removed: 0 })
      }
      await isInPlace()
      const back = await load(neighbour.workspace, neighbour.target, { mode, supersede: id })
      expect(back).toMatchObject({ rows: neighbour.rows, supersededRows: totals.rows })
      expect(await count(target, 'credentials')).toBe(neighbour.rows)
      // What it once did is no right to do it again.
      await refused(2, here, target, { mode })
      expect(await load(neighbour.workspace, neighbour.target, { mode })).toMatchObject({ rows: 0 })
    },
  )

  it('of equal rows of two data sets that loaded last counts, in each view once', async () => {
    const names = ['domain', 'source_id', 'word']
    const { target, load } = await newTable(kind, names)
    const put = (dataSet: string, day: number, ids: readonly number[], rest: string) => {
      const row = (id: number) =>
        `${id}::BIGINT, '2024-01-01 00:00:00+00'::TIMESTAMPTZ, ${rest}, '${dataSet}'`
      const shards = Object.fromEntries(ids.map((id) => [`${id}`, [row(id)]]))
      return load(shards, { dataSet, loadedAt: `2024-07-0${day}T00:00:00.000Z` })
    }
    const latest = async () => {
      const of = async (view: string, term: string) =>
        (await target.rows(`select ${term} as x from credentials_${view} order by 1`)).map(({ x }) => `${x}`)
      expect(await of('by_source', 'sum(credentials)')).toEqual(await of('latest', 'count(*)'))
      expect(await of('by_domain_month', 'sum(credentials)')).toEqual(await of('latest', 'count(*)'))
      return of('latest', "concat(id, ' ', word)")
    }
    const [known, unknown] = ["'a.example', 's'", 'NULL::VARCHAR, NULL::VARCHAR'] as const
    await put('y', 1, [1], known)
    await put('x', 2, [1], unknown)
    expect(await latest()).toEqual(['1 x'])
    await put('y', 3, [1, 2], known)
    expect(await latest()).toEqual(['1 y', '2 y'])
    // It moves no row.
    await put('x', 4, [1], unknown)
    expect(await latest()).toEqual(['1 y', '2 y'])
  })

  describe('after a change of the table by hand', () => {
    const former = ['drop table credentials cascade', 'alter table credentials rename to former']
    it.each(kind === 'duckdb' || THOROUGH ? oneFor(kind, former) : [])(
      '%s: the ledger’s entries of the table are void, for all data sets',
      async (sql) => {
        const { here, target, neighbour } = await loaded(kind)
        const { rows } = await loadHere(here, target)
        await target.change(sql)
        const { shards } = await here.manifest()
        const all = { loaded: shards.length, skipped: 0, replaced: 0 }
        expect(await load(here, target)).toMatchObject({ shards: all, rows })
        expect(await count(target, 'credentials')).toBe(rows)
        expect(await load(here, target)).toMatchObject({ rows: 0 })
        for (const rows of [neighbour.rows, 0])
          expect(await load(neighbour.workspace, neighbour.target)).toMatchObject({ rows })
        await expectRows(here, target)
      },
    )

    ofAny('a ledger that accepts no second entry: no row stays without its entry', async () => {
      const { here, target } = await loaded(kind)
      const { rows } = await loadHere(here, target)
      const mine = await own(here)
      await target.change('delete from credentials')
      await target.change('delete from spillway_loads')
      await target.change('create unique index one_entry on spillway_loads (data_set)')
      await refused(1, here, target)
      await isHonest(target)
      expect(await count(target, mine.rows)).toBeLessThan(rows)
      await target.change('drop index one_entry')
      await load(here, target)
      expect(await count(target, mine.rows)).toBe(rows)
    })

    const changes = [
      { how: 'the ledger is gone', change: () => 'drop table spillway_loads cascade' },
      {
        how: 'lines of the ledger are gone',
        change: (_: string, ledger: string) => `delete from ${ledger} and shard like '%quillmere%'`,
      },
      {
        how: 'a part of the rows is missing',
        change: (rows: string) => `delete from ${rows} and id % 3 = 0`,
      },
      { how: 'all rows are missing', change: (rows: string) => `delete from ${rows}` },
      {
        how: 'rows are there twice',
        change: (rows: string) => `insert into credentials select * from ${rows}`,
      },
    ] as const
    it.each(oneFor(kind, changes))(
      '$how: refused with both numbers, exit 1, until --mode replace',
      async ({ change }) => {
        const { here, target, neighbour } = await loaded(kind, partsWith({ load: { partition_by: 'query' } }))
        const { rows } = await loadHere(here, target)
        const mine = await own(here)
        const ledger = `(select sum(rows) as n from ${mine.ledger}) l`
        await target.change(change(mine.rows, mine.ledger))
        const left = await count(target, mine.rows)
        const message = await refused(1, here, target)
        const [{ n: listed } = { n: 0 }] = await target.rows(`select n from ${ledger}`)
        expect(message).toContain(
          `The table has ${left} rows of this data set, and spillway_loads lists ${Number(listed)}`,
        )
        expect(message).toContain('--mode replace')
        expect(await count(target, mine.rows)).toBe(left)
        expect(await load(here, target, { mode: 'replace' })).toMatchObject({ rows })
        await expectRows(here, target)
        expect(await load(here, target)).toMatchObject({ rows: 0 })
        if (!change('', '').startsWith('drop')) await neighbour.isUnchanged()
      },
    )
  })

  it('with upsert the table has one row for each data set, query and id: the one imported last', async () => {
    const { target, load } = await newTable(kind)
    const row = (id: number, value: string, word: string, day = 1) =>
      `${id}::BIGINT, '2024-01-0${day} 00:00:00+00'::TIMESTAMPTZ, 'domain', '${value}', '${word}'`
    const put = (shards: Parameters<typeof load>[0], dataSet = 'one') =>
      load(shards, { dataSet, mode: 'upsert' })
    const ofOne = "select word from credentials where spillway_data_set = 'one' order by word"
    const words = async () => (await target.rows(ofOne)).map(({ word }) => word)
    const january = [row(1, 'x', 'first'), row(2, 'x', 'stays')]
    const february = [row(1, 'x', 'later', 3), row(1, 'x', 'late', 2), row(1, 'y', 'other query', 3)]
    await put({ b: february })
    await put({ a: [row(1, 'x', 'other data set', 9)] }, 'two')
    // Older rows that come later change nothing, neither at first nor when their shard was written anew.
    await put({ a: january, b: february })
    expect(await words()).toEqual(['later', 'other query', 'stays'])
    await put({ a: january.slice(0, 1), b: february })
    expect(await words()).toEqual(['later', 'other query'])
    await put({ a: january, b: february, c: [row(1, 'x', 'last', 4)] })
    expect(await words()).toEqual(['last', 'other query', 'stays'])
    expect(await put({ a: january, b: february, c: [row(1, 'x', 'last', 4)] })).toMatchObject({ rows: 0 })
    // Rows that had been replaced come back when what replaced them goes.
    await put({ a: january, b: february })
    expect(await words()).toEqual(['later', 'other query', 'stays'])
    await put({ a: january })
    expect(await words()).toEqual(['first', 'stays'])
    expect(await count(target, "credentials where spillway_data_set = 'two'")).toBe(1)
  })
}

/** A database, and what loads rows into it that a test makes up: `id, imported_at`, and these. */
async function newTable(kind: TargetKind, names = ['query_type', 'query_value', 'word']) {
  const here = await newWorkspace({})
  const target = await newTarget(kind, here)
  const options = { clock: systemClock, stop: new AbortController().signal, onWait: () => {} }
  const warehouse =
    kind === 'duckdb'
      ? await DuckdbWarehouse.open(join(here.folder, 'leaks.db'), options)
      : await postgresAt(target.url)
  onTestFinished(() => warehouse.close())
  const columns = [columnOf('id', 'int64'), columnOf('imported_at', 'timestamp')]
  const table = tableWith([...columns, ...names.map((name) => columnOf(name))])
  return { target, load: loadValues.bind(null, warehouse, table) }
}
