import { join } from 'node:path'
import type { Environment, Place } from '../e2e/support/place.ts'
import { sql } from '../e2e/support/read-shards.ts'
import { PASSWORD, type PostgresServer, pgRows } from './postgres-server.ts'

/** A database that a test loads into. */
export type TestTarget = {
  /** What `--to` gets. */
  readonly url: string
  readonly env: Environment
  rows(query: string): Promise<Record<string, unknown>[]>
}

export type TargetKind = 'duckdb' | 'postgres'

export async function newTarget(kind: TargetKind, here: Place, server: PostgresServer): Promise<TestTarget> {
  if (kind === 'postgres') {
    const url = await server.database()
    return { url, env: { PGPASSWORD: PASSWORD }, rows: (query) => pgRows(url, query) }
  }
  const file = join(here.folder, 'leaks.db')
  return {
    url: 'duckdb:leaks.db',
    env: {},
    async rows(query) {
      await sql(`ATTACH '${file}' AS leaks (READ_ONLY)`)
      try {
        await sql('USE leaks')
        return await sql(query)
      } finally {
        await sql('USE memory')
        await sql('DETACH leaks')
      }
    },
  }
}
