import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ExportError, type Pipeline } from '../core/index.ts'
import { pathWithin } from './real-folder.ts'

/**
 * Where an archive about a data set may be written: anywhere but among its files, where readers take everything for data
 * that does not begin with `_`, and never over what is no archive.
 * @returns the absolute path
 * @throws ExportError `config`
 */
export async function evidencePlace(output: string, cwd: string, { load }: Pipeline): Promise<string> {
  const path = resolve(cwd, output)
  const within = await pathWithin(path, load.path)
  const [first = ''] = within ?? []
  if (within !== null && (!first.startsWith('_') || OWN.has(first))) throw amongData(output)
  const found = await kindOf(path)
  if (found === 'other') throw notAnArchive(output)
  return path
}

/** Names below load.path that stand for something else. */
const OWN: ReadonlySet<string> = new Set([
  '_manifest.json',
  '_manifest.sig',
  '_quarantine',
  '_report.html',
  '_state',
  '_SUCCESS',
])

const MAGIC = 'ustar'
const MAGIC_AT = 257

async function kindOf(path: string): Promise<'nothing' | 'archive' | 'other'> {
  try {
    const handle = await open(path, 'r')
    try {
      if (!(await handle.stat()).isFile()) return 'other'
      const { buffer } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, MAGIC_AT)
      return buffer.toString('latin1') === MAGIC ? 'archive' : 'other'
    } finally {
      await handle.close()
    }
  } catch (error) {
    // What else is in the way the write says.
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'nothing' : 'other'
  }
}

function amongData(output: string): ExportError {
  return new ExportError(
    'config',
    'The archive would lie in the folder of the data set, where readers take it for data',
    output,
    'Write it elsewhere, or give it a name that begins with _ and is not used there yet.',
  )
}

function notAnArchive(output: string): ExportError {
  return new ExportError(
    'config',
    'There is something of that name that is no tar archive, so it is not replaced',
    output,
    'Choose another name.',
  )
}
