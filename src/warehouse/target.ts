import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ExportError } from '../core/index.ts'
import { guarded, loadDuckdb, requireDuckdbFile } from './duckdb/instance.ts'
import { connectPostgres } from './postgres/postgres-connection.ts'

export type Target =
  | { readonly kind: 'duckdb'; readonly file: string; readonly label: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly label: string }

/** @throws ExportError `config` when it is none, or holds a password: every process here can read the command line */
export function parseTarget(text: string, cwd: string, flag = '--to'): Target {
  const refusal = (what: string, next: string): ExportError =>
    new ExportError({ kind: 'config', what, where: flag, next })
  const expected = 'Expected duckdb:<file> or postgres://user@host:port/database, found'
  const unknown = (found: string): ExportError => refusal(`${expected} ${found}`, 'Name one of these.')
  if (text.startsWith('duckdb:')) {
    const file = text.slice('duckdb:'.length)
    // It would be a file at the root of the disk.
    if (file.startsWith('//')) {
      const name = file.replace(/^\/+/, '') || '<file>'
      throw refusal(
        'A DuckDB file is named by its path, without //',
        `Write duckdb:${name} for a file below the working directory, or duckdb:/${name} for one at the root of the disk.`,
      )
    }
    if (file === '' || file === ':memory:') throw unknown('duckdb: without a file')
    const path = resolve(cwd, file)
    // DuckDB takes what follows a ? as settings.
    if (/^[a-z][a-z0-9+.-]+:/i.test(file) || path.includes('?'))
      throw refusal(
        'A DuckDB file lies on a disk, at a path without ?: neither MotherDuck nor another address can be loaded into',
        'Name a file on this machine: duckdb:leaks.db.',
      )
    return { kind: 'duckdb', file: path, label: text }
  }
  if (!/^postgres(?:ql)?:\/\//.test(text)) throw unknown(foundIn(text))
  if (!URL.canParse(text)) throw unknown('an invalid URL')
  const { password, searchParams } = new URL(text)
  if (password !== '' || searchParams.has('password'))
    throw refusal(
      'The target holds a password, which every process of this machine can read',
      'Leave it out: it is taken from PGPASSWORD or ~/.pgpass.',
    )
  return { kind: 'postgres', url: text, label: text }
}

/** With what was probably meant; of an address that may hold a password, the scheme alone. */
function foundIn(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0]
  if (/@|password/i.test(text)) return scheme ?? 'an address without a scheme (not shown)'
  const meant = /\.(?:db|duckdb)$/i.test(text) && scheme === undefined ? `; did you mean duckdb:${text}?` : ''
  return `${JSON.stringify(text.slice(0, MAX_SHOWN))}${meant}`
}

const MAX_SHOWN = 100

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
