import { ExportError } from '../core/index.ts'
import { loadDuckdb } from './duckdb.ts'
import { identifier, literal } from './table.ts'

/** What is asked: the files of a data set as one view, or the tables of a DuckDB file. */
export type Asked =
  | {
      readonly kind: 'files'
      readonly view: string
      /** SQL of its rows. */
      readonly select: string
      /** Absolute path of the data set: nothing else can be read. */
      readonly root: string
    }
  | { readonly kind: 'database'; readonly file: string }

export type Answer = {
  readonly columns: readonly string[]
  /** Values as JSON has them; integers beyond 2^53 and timestamps are text. */
  readonly rows: readonly (readonly unknown[])[]
}

/**
 * Carries out one SELECT in an embedded DuckDB that can't write and reads nothing but what is asked.
 * @throws ExportError `config` when it is not one statement that only reads, or DuckDB does not understand it
 */
export async function queryDataSet(asked: Asked, sql: string): Promise<Answer> {
  const { DuckDBInstance, DuckDBTypeId, StatementType } = await loadDuckdb()
  const integers: readonly number[] = [DuckDBTypeId.BIGINT, DuckDBTypeId.UBIGINT, DuckDBTypeId.HUGEINT]
  const instance =
    asked.kind === 'files'
      ? await DuckDBInstance.create(':memory:')
      : await DuckDBInstance.create(asked.file, { access_mode: 'READ_ONLY' }).catch((cause: unknown) => {
          throw notReadable(asked.file, cause)
        })
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    if (asked.kind === 'files') {
      await connection.run(`SET allowed_directories = [${literal(`${asked.root}/`)}]`)
      await connection.run(`CREATE VIEW ${identifier(asked.view)} AS ${asked.select}`)
    }
    await connection.run('SET enable_external_access = false')
    await connection.run('SET lock_configuration = true')
    const statements = await connection.extractStatements(sql)
    if (statements.count !== 1) throw oneStatement(statements.count)
    const statement = await statements.prepare(0)
    const reads: readonly number[] = [StatementType.SELECT, StatementType.EXPLAIN]
    if (!reads.includes(statement.statementType)) throw onlyReads()
    const result = await statement.runAndReadAll()
    const isInteger = result.columnTypes().map(({ typeId }) => integers.includes(typeId))
    return {
      columns: result.columnNames(),
      rows: result.getRowsJson().map((row) => plainNumbers(row, isInteger)),
    }
  } catch (error) {
    throw error instanceof ExportError ? error : notUnderstood(error)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** DuckDB's JSON has integers of 64 bits as text, all of them; those that JSON can hold are numbers here. */
function plainNumbers(row: readonly unknown[], isInteger: readonly boolean[]): readonly unknown[] {
  return row.map((value, i) => {
    const number = isInteger[i] && value !== null ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) ? number : value
  })
}

function oneStatement(count: number): ExportError {
  return new ExportError(
    'config',
    `Expected one statement, found ${count}`,
    '',
    'Ask one question at a time.',
  )
}

function onlyReads(): ExportError {
  return new ExportError(
    'config',
    'Only SELECT is carried out here: nothing may be changed',
    '',
    'Load the data set into a database of your own to change it: `spillway load --to duckdb:<file>`.',
  )
}

/** What DuckDB says of a statement is about the statement, which the user has written. */
function notUnderstood(error: unknown): ExportError {
  const message = error instanceof Error ? error.message.trim() : 'no more is known'
  return new ExportError('config', message, '', 'Correct the SQL; without any, `query` shows the columns.', {
    cause: error,
  })
}

function notReadable(file: string, cause: unknown): ExportError {
  return new ExportError(
    'config',
    'DuckDB can not open the file for reading',
    file,
    'See that it is there and that no other process is writing to it.',
    { cause },
  )
}
