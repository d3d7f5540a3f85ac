import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf, ExportError, type Pipeline } from '../../core/index.ts'
import { isNoFile, pathWithin } from './save-file.ts'

type FlagFile = {
  readonly path: string
  /** For messages: `The metrics file`. */
  readonly what: string
}

const IN_DATA_SETS = ['_manifest.json', '_state']

/** @param pipelines whose data sets may still have to be made @throws ExportError `config` */
export async function requireApart(
  { path, what }: FlagFile,
  pipelines: readonly Pick<Pipeline, 'load'>[] = [],
): Promise<void> {
  const refused = (how: string, next: string): ExportError =>
    new ExportError({ kind: 'config', what: `${what} ${how}`, where: path, next })
  const next = 'Choose another name.'
  if (isNoFile(path)) throw refused('is no file', next)
  if (/\.ya?ml$/i.test(path)) throw refused('would have the name of a pipeline file', next)
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw refused('is a symbolic link', next)
  const roots = pipelines.flatMap(({ load: { location } }) =>
    location.kind === 'disk' ? [location.root] : [],
  )
  const within = await Promise.all(roots.map((root) => pathWithin(path, root)))
  if (isInDataSet(dirname(path)) || within.some((names) => names !== null))
    throw refused('would lie in the folder of the data set', 'Choose another folder.')
}

function isInDataSet(folder: string): boolean {
  // A folder that is not there is reported where the file is opened.
  if (!existsSync(folder)) return false
  for (let at = realpathSync(folder); ; at = dirname(at)) {
    if (IN_DATA_SETS.some((name) => existsSync(join(at, name)))) return true
    if (at === dirname(at)) return false
  }
}

export function notWritable({ path, what }: FlagFile, cause: unknown): ExportError {
  return new ExportError({
    kind: 'config',
    what: `${what} cannot be written: ${codeOf(cause)}`,
    where: path,
    next: 'Choose a file in a folder that is there and can be written.',
    cause,
  })
}
