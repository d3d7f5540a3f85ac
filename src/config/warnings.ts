import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LEFT_OUT, OPTIONAL_FIELDS, type Pipeline, type Query } from '../core/index.ts'
import { didYouMean } from './problems/describe.ts'
import { UNIT_MICROS } from './resolve/resolve-extract.ts'
import { type Environment, readSecret, secretVariables, variable } from './secrets/secrets.ts'

/** The run does it, but it is rarely intended. */
type Warning = {
  readonly message: string
  readonly fields: Readonly<Record<string, string | number>>
}

const MAX_NAMED = 3

/** The warnings before a run. None of them stops it. */
export async function warningsFor(pipeline: Pipeline, env: Environment): Promise<readonly Warning[]> {
  return [
    ...(await openSecretFiles(pipeline, env)),
    ...setTwice(pipeline, env),
    ...(await veryShort(pipeline, env)),
    ...withUnknownFields(pipeline.extract),
    ...withWww(pipeline.extract.queries),
    ...withManyWindows(pipeline),
    ...(await begunElsewhere(pipeline.load)),
  ]
}

async function openSecretFiles(pipeline: Pipeline, env: Environment): Promise<Warning[]> {
  const warnings: Warning[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    // If the variable itself is set, the file is not read.
    const path = variable(name, env) === '' ? variable(`${name}_FILE`, env) : ''
    if (path === '' || !(await isOpenToOthers(path))) continue
    const message = 'every user of this machine may read or change a file with a secret; chmod 600 it'
    warnings.push({ message, fields: { variable: `${name}_FILE`, path } })
  }
  return warnings
}

function setTwice(pipeline: Pipeline, env: Environment): Warning[] {
  const isSet = (name: string): boolean => variable(name, env) !== ''
  return [...new Set(secretVariables(pipeline))]
    .filter((name) => isSet(name) && isSet(`${name}_FILE`))
    .map((name) => ({
      message: `${name} and ${name}_FILE are both set: ${name} is used, the file is not read`,
      fields: {},
    }))
}

/** Ordinary words contain shorter ones, and every text that repeats a secret is left out. */
const MIN_SECRET = 8

async function veryShort(pipeline: Pipeline, env: Environment): Promise<Warning[]> {
  const warnings: Warning[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    const secret = await readSecret(name, env).catch(() => null)
    if (secret === null || secret.length >= MIN_SECRET) continue
    const message = `${name} holds fewer than ${MIN_SECRET} characters: messages that contain them become "${LEFT_OUT}"; make sure that it is whole`
    warnings.push({ message, fields: {} })
  }
  return warnings
}

/** The service may know more fields than we do, so others are passed on. */
function withUnknownFields({ include }: Pipeline['extract']): Warning[] {
  return include
    .filter((field) => !OPTIONAL_FIELDS.has(field))
    .map((field) => ({
      message: `extract.include names a field that is not known here, and the service may reject it; \`check --probe\` tests that${didYouMean(field, OPTIONAL_FIELDS)}`,
      fields: { field },
    }))
}

/** A run from another directory than usual would export, and pay for, everything again. */
async function begunElsewhere({ path, besideFile }: Pipeline['load']): Promise<Warning[]> {
  const isThere = (folder: string) => stat(join(folder, '_state')).then(...TRUE_OR_FALSE)
  if (besideFile === undefined || (await isThere(path)) || !(await isThere(besideFile))) return []
  const message =
    'a data set lies beside the pipeline file, and this one begins elsewhere: relative paths start in the working directory'
  return [{ message, fields: { there: besideFile, here: path } }]
}

const TRUE_OR_FALSE = [() => true, () => false] as const

/** The service searches for the exact name, and addresses rarely end in @www.… */
function withWww(queries: readonly Query[]): Warning[] {
  const names = queries.flatMap((query) =>
    query.type === 'domain' && query.fqdn.startsWith('www.') ? [query.fqdn] : [],
  )
  const [first] = names
  if (first === undefined) return []
  const message = 'www. is searched for literally and finds almost nothing; write the domain without it'
  const more = names.length - MAX_NAMED
  const domains = `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return [{ message, fields: { domains } }]
}

const MANY_WINDOWS = 2000

/** Each window of each query has its own folder. */
function withManyWindows({ extract, load }: Pipeline): Warning[] {
  const { windows, queries } = extract
  const every = windows?.every
  if (windows == null || every == null || !('count' in every) || !load.partitionBy.includes('window'))
    return []
  const until = windows.until === 'now' ? Date.now() * 1000 : windows.until
  const count = Math.ceil((until - windows.from) / (every.count * UNIT_MICROS[every.unit]))
  if (count <= MANY_WINDOWS) return []
  const folders = count * (load.partitionBy.includes('query') ? queries.length : 1)
  const message = 'extract.windows.every makes very many folders with small files; choose longer windows'
  return [{ message, fields: { windows: count, folders } }]
}

/**
 * Whether users other than a file's owner and group may do anything with it. A group is often how a service is given
 * one.
 */
export async function isOpenToOthers(path: string): Promise<boolean> {
  // Windows has no such permissions. Node.js emulates them.
  if (process.platform === 'win32') return false
  const found = await stat(path).catch(() => null)
  return found !== null && (found.mode & OTHERS) !== 0
}

const OTHERS = 0o007
