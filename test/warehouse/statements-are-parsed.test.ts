import { init, parse, type DialectName as RustDialect } from '@guanmingchiu/sqlparser-ts'
// By their files: the package's index imports the grammars of all engines, which takes long.
import { HiveSQL } from 'dt-sql-parser/dist/parser/hive/index.js'
import { SparkSQL } from 'dt-sql-parser/dist/parser/spark/index.js'
import { TrinoSQL } from 'dt-sql-parser/dist/parser/trino/index.js'
import { parse as parseBigQuery } from 'sql-parser-cst'
import { beforeAll, describe, expect, it } from 'vitest'
import { allColumns, type Format } from '../../src/core/index.ts'
import { DIALECTS, type DialectName } from '../../src/warehouse/index.ts'

const FORMATS: readonly Format[] = [
  { kind: 'parquet', engine: 'columnar', compression: 'snappy', encodings: 'compact', bloomFilters: [] },
  { kind: 'csv', engine: 'columnar', compression: 'gzip', escapeFormulas: false },
  { kind: 'csv', engine: 'columnar', compression: 'none', escapeFormulas: false },
]

/** Everything that a dialect prints of data sets of every kind, with a table of that name. */
function statements(dialect: DialectName, table: string): readonly string[] {
  return FORMATS.flatMap((format) => [
    DIALECTS[dialect]({
      pipeline: 'acme',
      resource: 'credentials',
      table,
      columns: allColumns('credentials', ['known_password_id', 'auth_domains', 'urls']),
      format,
      path: '/data/acme',
      extension: format.kind === 'csv' ? '.csv.gz' : '.parquet',
      partitionBy: ['query', 'window'],
    }),
    DIALECTS[dialect]({
      pipeline: 'acme',
      resource: 'reports',
      table,
      columns: allColumns('reports', []),
      format,
      path: 's3://lake/acme',
      extension: '.parquet',
      partitionBy: [],
    }),
  ])
}

// A reserved word of every dialect; and a name that needs quotes.
const TABLES = ['credentials', 'select', 'leaks of 2024, "all"']

const GRAMMARS = { spark: SparkSQL, trino: TrinoSQL, athena: HiveSQL } as const

describe.each(Object.keys(GRAMMARS) as (keyof typeof GRAMMARS)[])('%s', (dialect) => {
  it.each(TABLES)('every statement is valid in its grammar, with a table named %s', (table) => {
    const grammar = new GRAMMARS[dialect]()
    for (const text of statements(dialect, table)) expect(grammar.validate(text), text).toEqual([])
  })
})

it.each(TABLES)('bigquery: every statement is valid in its grammar, with a table named %s', (table) => {
  for (const text of statements('bigquery', table)) {
    expect(() => parseBigQuery(text, { dialect: 'bigquery' }), text).not.toThrow()
  }
})

beforeAll(() => init())

/** Statements that the parser of a dialect does not know, though the engine does. */
const UNKNOWN = {
  clickhouse: [],
  redshift: [/^COPY [^;]* SERIALIZETOJSON$/],
  snowflake: [/^CREATE OR REPLACE FILE FORMAT /, /^COPY INTO [^;]*::/],
} as const satisfies Partial<Record<DialectName, readonly RegExp[]>>

describe.each(Object.keys(UNKNOWN) as (keyof typeof UNKNOWN)[])('%s', (dialect) => {
  it.each(TABLES)('every statement but those in UNKNOWN is parsed, with a table named %s', (table) => {
    const unknown = new Set<RegExp>()
    for (const statement of statements(dialect, table).flatMap(split)) {
      const known = UNKNOWN[dialect].find((pattern) => pattern.test(statement))
      if (known === undefined)
        expect(() => parse(statement, dialectOf(dialect, statement)), statement).not.toThrow()
      else {
        unknown.add(known)
        // If a parser learns the statement, remove its pattern from UNKNOWN.
        expect(() => parse(statement, dialect), statement).toThrow()
      }
    }
    expect([...unknown]).toHaveLength(UNKNOWN[dialect].length)
  })
})

/** Redshift has PostgreSQL's COMMENT. */
function dialectOf(dialect: keyof typeof UNKNOWN, statement: string): RustDialect {
  return dialect === 'redshift' && statement.startsWith('COMMENT') ? 'postgresql' : dialect
}

/** Without comments, which stand on lines of their own. No value in these statements ends a line with a semicolon. */
function split(text: string): readonly string[] {
  return text
    .replace(/^ *--.*\n/gm, '')
    .split(/;\n+/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

it('the parsers refuse invalid statements', () => {
  expect(new TrinoSQL().validate('CREATE TABLE a.b.select (x BIGINT)')).not.toEqual([])
  expect(new SparkSQL().validate('CREATE TABLE leaks of 2024 (x BIGINT)')).not.toEqual([])
  expect(new HiveSQL().validate('CREATE EXTERNAL TABLE leaks of (x bigint)')).not.toEqual([])
  expect(() => parseBigQuery('CREATE TABLE d.t (hash STRING)', { dialect: 'bigquery' })).toThrow()
  for (const dialect of ['clickhouse', 'redshift', 'snowflake'] as const) {
    expect(() => parse('CREATE TABLE leaks of 2024 (x BIGINT)', dialect)).toThrow()
  }
})
