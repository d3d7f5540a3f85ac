import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname } from 'node:path'
import { loadDuckdb } from './duckdb/duckdb.ts'
import { guarded, requireDuckdbFile } from './duckdb/duckdb-file.ts'
import { connectPostgres } from './postgres/postgres-connection.ts'
import type { Target } from './target.ts'

/** Checks client, login or file. Changes nothing. @throws ExportError as the load: `config`, `target`, `credentials` */
export async function requireTarget(target: Target, stop: AbortSignal): Promise<void> {
  // It reads the shards of every load.
  await loadDuckdb()
  if (target.kind === 'postgres') {
    const postgres = await connectPostgres(target.url, target.label, stop)
    return postgres.close()
  }
  const { file } = target
  await guarded(file, async () => {
    await access(dirname(file), constants.W_OK)
    await requireDuckdbFile(file)
    await access(file, constants.W_OK).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  })
}
