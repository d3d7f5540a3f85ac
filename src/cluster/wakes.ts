import type { Database } from './database.ts'

/** What is told to workers when there may be something to do. */
export const WAKES = 'spillway_wakes'

export async function wake(database: Database): Promise<void> {
  await database.query('SELECT pg_notify($1, $2)', [WAKES, ''])
}
