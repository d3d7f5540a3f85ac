import { beforeAll, describe, expect, it } from 'vitest'
import type { Format } from '../../src/core/index.ts'
import { allColumns } from '../../src/rows/index.ts'
import { type DdlInput, DIALECTS, type DialectName } from '../../src/warehouse/index.ts'
import { thoroughPackage } from '../thorough/packages.mjs'
import { CSV, inputOf, PARQUET } from './ddl-input.ts'

const { init, parse } = await thoroughPackage('@guanmingchiu/sqlparser-ts')
// By their files: the package's index imports the grammars of all engines, which takes long.
const { HiveSQL } = await thoroughPackage('dt-sql-parser/dist/parser/hive/index.js')
const { SparkSQL } = await thoroughPackage('dt-sql-parser/dist/parser/spark/index.js')
const { TrinoSQL } = await thoroughPackage('dt-sql-parser/dist/parser/trino/index.js')
const { parse: parseBigQuery } = await thoroughPackage('sql-parser-cst')

const FORMATS: readonly Format[] = [PARQUET, CSV, { ...CSV, compression: 'none' } as Format]

const MANIFEST = {
  data_set_id: '3f8331a2-4911-48d5-b1d9-7717701f5294',
  shards: ['a%27b', 'c'].map((name) => ({
    path: `credentials/query=keyword.${name}/import_window=2024-01-01/part-00000.parquet`,
    ...{ rows: 13, bytes: 4096, sha256: 'ef9d3106'.repeat(8), partitions: [], imported_at: null },
  })),
}

/** Everything that a dialect prints of data sets of every kind, with a table of that name. */
function statements(dialect: DialectName, table: string): readonly string[] {
  const print = (input: DdlInput): readonly string[] => {
    const sync = DIALECTS[dialect].sync?.({
      ...input,
      manifest: MANIFEST,
      schemas: [input.columns, input.columns.slice(1)],
    })
    return [DIALECTS[dialect].statements(input), ...(sync === undefined ? [] : [sync])]
  }
  const included = ['known_password_id', 'auth_domains', 'urls']
  const formats = PARQUET_ONLY.has(dialect) ? [PARQUET] : FORMATS
  return formats.flatMap((format) => [
    ...print(inputOf({ table, format, columns: allColumns('credentials', included) })),
    ...print(inputOf({ table, format: PARQUET, added: allColumns('credentials', included).slice(-3) })),
    ...print(inputOf({ resource: 'reports', table, format, path: 's3://lake/acme', partitionBy: [] })),
  ])
}

const PARQUET_ONLY: ReadonlySet<DialectName> = new Set(['databricks', 'spark', 'trino', 'athena'])

// A reserved word of every dialect; and names that need quotes.
const TABLES = ['credentials', 'select', 'leaks of 2024, "all"', "o'hara"]

const GRAMMARS = { spark: SparkSQL, trino: TrinoSQL, athena: HiveSQL } as const

describe.each(Object.keys(GRAMMARS) as (keyof typeof GRAMMARS)[])('%s', (dialect) => {
  it.each(TABLES)('every statement is valid in its grammar, with a table named %s', (table) => {
    const grammar = new GRAMMARS[dialect]()
    for (const text of statements(dialect, table)) expect(grammar.validate(text), text).toEqual([])
  })
})

it.each(TABLES)('bigquery: every statement is valid in its grammar, with a table named %s', (table) => {
  for (const text of statements('bigquery', table))
    expect(() => parseBigQuery(text, { dialect: 'bigquery' }), text).not.toThrow()
})

beforeAll(() => init())

const ADD_COLUMN = / ADD COLUMN IF NOT EXISTS /

/** Statements that the parser of a dialect does not know, though the engine does. */
const UNKNOWN = {
  clickhouse: [/^ALTER TABLE \S.* DELETE\n/, ADD_COLUMN],
  databricks: [],
  redshift: [/^COPY [^;]* SERIALIZETOJSON$/, /^CREATE OR REPLACE PROCEDURE /],
  snowflake: [/^CREATE OR REPLACE FILE FORMAT /, /^COPY INTO [^;]*::/, ADD_COLUMN],
} as const satisfies Partial<Record<DialectName, readonly RegExp[]>>

describe.each(Object.keys(UNKNOWN) as (keyof typeof UNKNOWN)[])('%s', (dialect) => {
  it.each(TABLES)('every statement but those in UNKNOWN is parsed, with a table named %s', (table) => {
    const unknown = new Set<RegExp>()
    for (const statement of statements(dialect, table).flatMap(split)) {
      const known = UNKNOWN[dialect].find((pattern) => pattern.test(statement))
      if (known === undefined)
        expect(
          () => parse(readable(dialect, statement), dialectOf(dialect, statement)),
          statement,
        ).not.toThrow()
      else {
        unknown.add(known)
        // If a parser learns the statement, remove its pattern from UNKNOWN.
        expect(() => parse(statement, dialect), statement).toThrow()
      }
    }
    expect([...unknown]).toHaveLength(UNKNOWN[dialect].length)
  })
})

/** The parser does not know that Databricks escapes with backslashes. */
function readable(dialect: keyof typeof UNKNOWN, statement: string): string {
  return dialect === 'databricks' ? statement.replaceAll("\\'", "''") : statement
}

/** Redshift has PostgreSQL's COMMENT. */
function dialectOf(dialect: keyof typeof UNKNOWN, statement: string): string {
  return dialect === 'redshift' && statement.startsWith('COMMENT') ? 'postgresql' : dialect
}

/**
 * Without comments, which stand on lines of their own. No value in these statements ends a line with a semicolon, but
 * statements between `$$`.
 */
function split(text: string): readonly string[] {
  return text
    .replace(/^ *--.*\n/gm, '')
    .replace(/\$\$.*?\$\$/gs, (body) => body.replaceAll(';', '\0'))
    .split(/;\n+/)
    .map((statement) => statement.replaceAll('\0', ';').trim())
    .filter((statement) => statement !== '')
}

it('what Snowflake and Redshift put together as they run is parsed', () => {
  // Snowflake escapes with backslashes, Redshift doubles the quote.
  const unquoted = (text: string): string => text.replaceAll("''", "'").replaceAll(/\\(.)/g, '$1')
  const text = "((?:[^'\\\\]|\\\\.|'')*)'"
  for (const statement of statements('snowflake', 'leaks')) {
    const [, insert, where] =
      new RegExp(`copying := '${text} [|]{2} batch.PATHS [|]{2} '${text};`).exec(statement) ?? []
    if (insert === undefined) continue
    const whole = `${unquoted(insert)}a|b${unquoted(where!)}`
    // The casts of Parquet are not known in a query of a stage.
    const known = whole.replaceAll(/[$]1:("\w+")::[\w(), ]+?(?=, [$(])/g, '$1')
    expect(() => parse(known, 'snowflake'), known).not.toThrow()
  }
  for (const statement of statements('redshift', 'leaks')) {
    const [, copy, root, options] =
      new RegExp(
        `EXECUTE '${text} [|]{2} quote_literal[(]'${text} [|]{2} missing.shard[)] [|]{2} '${text};`,
      ).exec(statement) ?? []
    if (copy === undefined) continue
    const whole = `${unquoted(copy)}'${unquoted(root!)}a'${unquoted(options!)}`.replace(
      ' SERIALIZETOJSON',
      '',
    )
    expect(() => parse(whole, 'redshift'), whole).not.toThrow()
    const [insert] = /INSERT INTO "leaks"[^;]*/.exec(statement.slice(statement.indexOf('EXECUTE')))!
    expect(() => parse(insert, 'redshift'), insert).not.toThrow()
  }
})

it('the parsers refuse invalid statements', () => {
  expect(new TrinoSQL().validate('CREATE TABLE a.b.select (x BIGINT)')).not.toEqual([])
  expect(new SparkSQL().validate('CREATE TABLE leaks of 2024 (x BIGINT)')).not.toEqual([])
  expect(new HiveSQL().validate('CREATE EXTERNAL TABLE leaks of (x bigint)')).not.toEqual([])
  expect(() => parseBigQuery('CREATE TABLE d.t (hash STRING)', { dialect: 'bigquery' })).toThrow()
  for (const dialect of ['clickhouse', 'redshift', 'snowflake'] as const)
    expect(() => parse('CREATE TABLE leaks of 2024 (x BIGINT)', dialect)).toThrow()
})
