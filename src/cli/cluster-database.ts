import { DATABASE_VARIABLE, type Database, openDatabase, requireTables } from '../cluster/index.ts'
import { readSecret } from '../config/index.ts'
import { systemClock } from '../core/index.ts'
import type { Io } from './io.ts'

/** A statement of many workers takes milliseconds, so that a few connections serve many lanes. */
const CONNECTIONS = 4

/** The database that SPILLWAY_DATABASE_URL names, for as long as `use` takes. @throws ExportError `config` or `target` */
export async function withDatabase<T>(
  io: Io,
  { tables }: { readonly tables: boolean },
  use: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(await readSecret(DATABASE_VARIABLE, io.env), {
    clock: systemClock,
    connections: CONNECTIONS,
    warn: (message) => io.log('warn', message),
  })
  try {
    if (tables) await requireTables(database)
    return await use(database)
  } finally {
    await database.close()
  }
}
