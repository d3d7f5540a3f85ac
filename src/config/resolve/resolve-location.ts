import { dirname, resolve } from 'node:path'
import type { LoadSettings } from '../../core/index.ts'
import { shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { isLoopback } from '../values/urls.ts'

const ADDRESS = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/
// What every store takes in a key, and what needs no escaping in any engine's address of it.
const PREFIX = /^[A-Za-z0-9._=-]+(?:\/[A-Za-z0-9._=-]+)*$/
// S3 allows 1,024 bytes a key; most of them are for the names of queries.
const MAX_PREFIX = 300

/** Where the data set lies: a folder, or a prefix of a bucket; and its state, where that is kept apart. */
export function resolveLocation(
  file: PipelineFile,
  problems: Problems,
  cwd: string,
): Pick<LoadSettings, 'path' | 'pathAsGiven' | 'place'> {
  const pathAsGiven = file.load.path ?? `output/${file.name}`
  if (/^s3:/i.test(pathAsGiven)) return bucketLocation(file, pathAsGiven, problems, cwd)
  const path = resolve(cwd, pathAsGiven)
  if (dirname(path) === path) {
    problems.add(
      ['load', 'path'],
      `is the root of the file system, where other files are; expected a folder for the data set alone, found ${shownPath(pathAsGiven)}`,
    )
  } else if (/^[a-z][a-z0-9+.-]*:\/\//i.test(pathAsGiven)) {
    problems.add(['load', 'path'], `expected a folder or s3://bucket/prefix, found ${shownPath(pathAsGiven)}`)
  }
  const needsBucket = 'goes with a load.path that begins with s3://'
  if (file.load.s3 !== undefined) problems.add(['load', 's3'], needsBucket, 'key')
  if (file.state.path !== undefined) problems.add(['state', 'path'], needsBucket, 'key')
  return { path, pathAsGiven, place: { kind: 'disk', root: path } }
}

function bucketLocation(
  { load, state }: PipelineFile,
  pathAsGiven: string,
  problems: Problems,
  cwd: string,
): Pick<LoadSettings, 'path' | 'pathAsGiven' | 'place'> {
  const [, bucket = '', rest = ''] = ADDRESS.exec(pathAsGiven) ?? []
  const prefix = rest.replace(/\/+$/, '')
  if (bucket === '' || bucket.includes('..')) {
    problems.add(
      ['load', 'path'],
      `expected s3://bucket/prefix with a bucket of 3 to 63 of a-z, 0-9, - and ., found ${shownPath(pathAsGiven)}`,
    )
  } else if (
    prefix !== '' &&
    (prefix.length > MAX_PREFIX || !PREFIX.test(prefix) || /(?:^|\/)\.\.?(?:\/|$)/.test(prefix))
  ) {
    problems.add(
      ['load', 'path'],
      `expected a prefix of up to ${MAX_PREFIX} of A-Z, a-z, 0-9, ., _, =, - and single /, found ${shownPath(prefix)}`,
    )
  }
  const { endpoint = null, region = null, path_style: pathStyle = null, allow_http = false } = load.s3 ?? {}
  if (endpoint?.startsWith('http:') && !allow_http && !isLoopback(endpoint)) {
    problems.add(
      ['load', 's3', 'endpoint'],
      'expected https, found http to another machine; rows would travel unencrypted (allow_http: true permits it)',
    )
  }
  const stateRoot = state.path === undefined ? null : resolve(cwd, state.path)
  if (stateRoot !== null && dirname(stateRoot) === stateRoot) {
    problems.add(['state', 'path'], 'is the root of the file system; expected a folder for the state alone')
  }
  return {
    path: prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`,
    pathAsGiven,
    place: { kind: 's3', bucket, prefix, endpoint, region, pathStyle, allowHttp: allow_http, stateRoot },
  }
}

/** A path is no secret; an address in its place may hold a password. */
function shownPath(path: string): string {
  return /\/\/[^/]*@/.test(path) ? 'an address with a user (not shown)' : JSON.stringify(shown(path))
}
