import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import { ExportError, isExportError, type Pipeline } from '../core/index.ts'
import { type ReadOptions, readPipeline } from './read-pipeline.ts'
import { learnSecrets } from './secrets/secrets.ts'

/** A pipeline file as it is named to other machines, which have their own copies of it. */
type SubmittedFile = {
  /** As it was given to `submit`. */
  readonly path: string
  /** Of its bytes, in hex. */
  readonly sha256: string
}

/** @throws the error of the file system when the file cannot be read */
export async function submittedFile(path: string, cwd: string): Promise<SubmittedFile> {
  const bytes = await readFile(resolve(cwd, path))
  return { path, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** Why this machine leaves a pipeline to others. */
type LeftFile = {
  /** The absolute path at which it looked. */
  readonly path: string
  readonly why: 'it is not there' | 'it is another than the submitted one' | 'it is outside of the folder'
}

/**
 * The pipeline of the same path below a folder of this machine. Errors go to the queue, so they do not quote the file.
 * @throws ExportError `config` when it is invalid here
 */
export async function readSubmitted(
  { path, sha256 }: SubmittedFile,
  folder: string,
  options: ReadOptions,
): Promise<{ readonly pipeline: Pipeline } | { readonly left: LeftFile }> {
  const file = resolve(folder, path)
  const left = (why: LeftFile['why']) => ({ left: { path: file, why } })
  // Whoever can write to the queue names files, but only those that are meant to be run.
  const below = relative(folder, file)
  if (below.startsWith('..') || isAbsolute(below)) return left('it is outside of the folder')
  const found = await submittedFile(file, folder).catch(() => null)
  if (found === null) return left('it is not there')
  if (found.sha256 !== sha256) return left('it is another than the submitted one')
  await learnSecrets(options.env)
  const pipeline = await readPipeline(file, options).catch((error: unknown) => {
    if (!isExportError(error)) throw error
    const next = 'Correct it: `check` says what is wrong, on the machine that has the file.'
    throw new ExportError({ kind: error.kind, what: error.what, where: error.where, next })
  })
  await learnSecrets(options.env, pipeline)
  return { pipeline }
}
