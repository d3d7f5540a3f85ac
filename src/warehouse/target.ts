import { resolve } from 'node:path'
import { ExportError } from '../core/index.ts'

/** The database that rows are loaded into. */
export type Target =
  | { readonly kind: 'duckdb'; readonly file: string; readonly label: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly label: string }

/**
 * Reads `duckdb:<file>` or `postgres://user@host:port/database`.
 * @param flag what it was given with, for messages
 * @throws ExportError `config` when it is neither, or holds a password: every process of the machine can read the
 *   command line
 */
export function parseTarget(text: string, cwd: string, flag = '--to'): Target {
  if (text.startsWith('duckdb:')) {
    const file = text.slice('duckdb:'.length)
    if (file.startsWith('//')) throw isNoAddress(file, flag)
    if (/^[a-z][a-z0-9+.-]+:/i.test(file)) throw isNoFile(flag)
    if (file === '' || file === ':memory:') throw notATarget('duckdb: without a file', flag)
    const path = resolve(cwd, file)
    // DuckDB takes what follows it as settings.
    if (path.includes('?')) throw isNoFile(flag)
    return { kind: 'duckdb', file: path, label: text }
  }
  if (/^postgres(?:ql)?:\/\//.test(text)) {
    const url = URL.canParse(text) ? new URL(text) : null
    if (url === null) throw notATarget('an invalid URL', flag)
    if (url.password !== '' || url.searchParams.has('password')) throw hasPassword(flag)
    return { kind: 'postgres', url: text, label: text }
  }
  throw notATarget(foundIn(text), flag)
}

/** With what was probably meant; of an address that may hold a password, the scheme alone. */
function foundIn(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0]
  if (/@|password/i.test(text)) return scheme ?? 'an address without a scheme (not shown)'
  const meant = /\.(?:db|duckdb)$/i.test(text) && scheme === undefined ? `; did you mean duckdb:${text}?` : ''
  return `${JSON.stringify(text.slice(0, MAX_SHOWN))}${meant}`
}

const MAX_SHOWN = 100

function notATarget(found: string, flag: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `Expected duckdb:<file> or postgres://user@host:port/database, found ${found}`,
    where: flag,
    next: 'Name one of these.',
  })
}

function isNoFile(flag: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'A DuckDB file lies on a disk, at a path without ?: neither MotherDuck nor another address can be loaded into',
    where: flag,
    next: 'Name a file on this machine: duckdb:leaks.db.',
  })
}

/** `duckdb://leaks.db` would be a file at the root of the disk. */
function isNoAddress(file: string, flag: string): ExportError {
  const name = file.replace(/^\/+/, '')
  return new ExportError({
    kind: 'config',
    what: 'A DuckDB file is named by its path, without //',
    where: flag,
    next: `Write duckdb:${name === '' ? '<file>' : name} for a file below the working directory, or duckdb:/${name} for one at the root of the disk.`,
  })
}

function hasPassword(flag: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The target holds a password, which every process of this machine can read',
    where: flag,
    next: 'Leave it out: it is taken from PGPASSWORD or ~/.pgpass.',
  })
}
