import { join } from 'node:path'
import { ExportError, isExportError, type Pipeline } from '../../core/index.ts'

/**
 * Carries out what is about a data set; errors that name a location in it name it below `load.path` as the pipeline file
 * gives that. Inside, paths are relative to the data set, wherever it lies.
 */
export async function namingLocations<T>(pipeline: Pipeline, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw isExportError(error) ? withLocation(pipeline, error) : error
  }
}

/** The same error with its location below `load.path`; as it is when it is about something else. */
export function withLocation({ load }: Pipeline, error: ExportError): ExportError {
  if (!IN_DATA_SET.test(error.where)) return error
  const apart = load.place.kind === 's3' && error.where.startsWith('_state') ? load.place.stateRoot : null
  const root = (apart ?? load.pathAsGiven).replace(/(?<=.)\/+$/, '')
  const location = error.where === '.' ? root : `${root === '/' ? '' : root}/${error.where}`
  return new ExportError(error.kind, error.what, location, error.next, {
    cause: error.cause,
    untilMs: error.untilMs,
  })
}

/** The first part of every path in a data set. Partitions are named `<type>.<value>/…`, addresses begin otherwise. */
const IN_DATA_SET = /^(?:_[\w.]+|credentials|reports)(?:\/|$)|^\.$/

/** Absolute path of a file of the data set, or its address. */
export function pathIn({ load }: Pipeline, path: string): string {
  return load.place.kind === 'disk' ? join(load.place.root, path) : `${load.path}/${path}`
}
