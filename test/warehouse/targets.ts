import { join } from 'node:path'
import { PASSWORD, pgClient, pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { sql } from '../support/read-shards.ts'
import type { Environment, Workspace } from '../support/workspace.ts'

/** A database that a test loads into. */
export type TestTarget = {
  readonly url: string
  readonly env: Environment
  rows(query: string): Promise<Record<string, unknown>[]>
  /** Executes a statement, as another client than spillway. */
  change(statement: string): Promise<void>
  /** Locks it as a load does. @returns what releases it */
  hold(): Promise<() => Promise<void>>
}

export type TargetKind = 'duckdb' | 'postgres'

/** @param database creates one, if not on the server that all tests share */
export async function newTarget(
  kind: TargetKind,
  here: Workspace,
  database: () => Promise<string> = newDatabase,
): Promise<TestTarget> {
  if (kind === 'postgres') {
    const url = await database()
    // Commands that run in this process find it here.
    process.env.PGPASSWORD = PASSWORD
    return {
      url,
      env: { PGPASSWORD: PASSWORD },
      rows: (query) => pgRows(url, query),
      change: async (statement) => void (await pgRows(url, statement)),
      async hold() {
        const client = await pgClient(url)
        await client.query(`SELECT pg_advisory_lock(hashtextextended('spillway "public"."credentials"', 0))`)
        return () => client.end()
      },
    }
  }
  const file = join(here.folder, 'leaks.db')
  return {
    url: 'duckdb:leaks.db',
    env: {},
    rows: (query) => inDuckdb(file, () => sql(query), '(READ_ONLY)'),
    change: async (statement) => void (await inDuckdb(file, () => sql(statement))),
    async hold() {
      await sql(`ATTACH '${file}' AS held`)
      return async () => void (await sql('DETACH held'))
    },
  }
}

export async function inDuckdb<T>(
  file: string,
  work: () => Promise<T>,
  how: '' | '(READ_ONLY)' = '',
): Promise<T> {
  await sql(`ATTACH '${file}' AS attached ${how}`)
  try {
    await sql('USE attached')
    return await work()
  } finally {
    await sql('USE memory')
    await sql('DETACH attached')
  }
}
