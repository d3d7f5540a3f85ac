import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  ExportError,
  isExportError,
  LEFT_OUT,
  OPTIONAL_FIELDS,
  type Pipeline,
  type Query,
  requireConsent,
  UNKNOWN_SERVICE,
  visibleLabel,
} from '../core/index.ts'
import { didYouMean } from './problems/describe.ts'
import { dotted, isMapping, lineOf, locationAt, type Path, type Tree, valueAt } from './problems/tree.ts'
import { UNIT_MICROS } from './resolve/resolve-extract.ts'
import {
  type Environment,
  readMaskKey,
  readSecret,
  requireCredential,
  requireSecret,
  secretVariables,
  variable,
} from './secrets/secrets.ts'
import { rereadTree } from './yaml/read-tree.ts'

type Dependencies = {
  readonly env: Environment
  /** Working directory: the name of the pipeline file is relative to it. */
  readonly cwd: string
  /** Consent to `transform.secret: plaintext`, given for this run. */
  readonly allowPlaintext: boolean
  /** Nothing is sent, so what only requests need may be missing: {@link missingForRequests}. Default: false. */
  readonly sendsNothing?: boolean
}

/**
 * Checks what a run needs besides its file: the token or API key, the secrets that are searched for, the
 * masking key, and consent if secrets stay unmasked.
 * @returns the names of the variables that the run reads
 * @throws ExportError 'config' that names everything missing with file and line
 */
export async function checkRequirements(
  pipeline: Pipeline,
  dependencies: Dependencies,
): Promise<readonly string[]> {
  const { env, sendsNothing = false } = dependencies
  const needs = needsOf(pipeline, dependencies).filter(
    (need) => !(sendsNothing && need.isForRequests && isUnset(need.variable, env)),
  )
  const missing: Missing[] = []
  for (const need of needs) {
    const problem = await problemOf(need)
    if (problem !== null) missing.push({ problem, find: need.find })
  }
  if (missing.length > 0) throw await missingError(missing, pipeline.file, dependencies)
  return needs.flatMap(({ variable }) => (variable === null ? [] : [variable]))
}

/** What a run would need besides, for requests: variables that are not set. */
export function missingForRequests(pipeline: Pipeline, env: Environment): readonly string[] {
  const needs = needsOf(pipeline, { env, cwd: '', allowPlaintext: true })
  return [
    ...(pipeline.service.baseUrl === UNKNOWN_SERVICE ? ['the variable of service.base_url'] : []),
    ...needs.flatMap(({ variable, isForRequests }) =>
      variable !== null && isForRequests && isUnset(variable, env) ? [variable] : [],
    ),
  ]
}

function isUnset(name: string | null, env: Environment): boolean {
  return name !== null && variable(name, env) === '' && variable(`${name}_FILE`, env) === ''
}

/**
 * The mask key if a query is named by a digest; null: all names are known without it.
 * @throws ExportError 'config' when it is missing or invalid, with file and line
 */
export async function readNamingKey(
  pipeline: Pipeline,
  { env, cwd }: Pick<Dependencies, 'env' | 'cwd'>,
): Promise<Uint8Array | null> {
  const { extract, transform } = pipeline
  const queries = [...extract.queries, ...(extract.unfiltered?.queries ?? [])]
  if (queries.every((query) => visibleLabel(query, transform.identity) !== null)) return null
  const need = maskKeyNeed(pipeline, env)
  const problem = await problemOf(need)
  if (problem !== null) throw await missingError([{ problem, find: need.find }], pipeline.file, { env, cwd })
  return readMaskKey(pipeline, env)
}

/** {@link readNamingKey}, null also if the key cannot be read: completeness is then shown without figures. */
export async function knownNamingKey(
  pipeline: Pipeline,
  context: Pick<Dependencies, 'env' | 'cwd'>,
): Promise<Uint8Array | null> {
  try {
    return await readNamingKey(pipeline, context)
  } catch (error) {
    if (isExportError(error, 'config')) return null
    throw error
  }
}

type Need = {
  /** Its environment variable; null: none. */
  readonly variable: string | null
  /** Only requests need it. */
  readonly isForRequests: boolean
  /** @throws ExportError `config` when it is not met */
  readonly check: () => Promise<unknown>
  /** Its path in the file. */
  readonly find: (tree: Tree) => Path
}

type Missing = Pick<Need, 'find'> & { readonly problem: ExportError }

function needsOf(pipeline: Pipeline, { env, allowPlaintext }: Dependencies): readonly Need[] {
  const { service, extract, transform } = pipeline
  const { auth } = service
  const secret = (variable: string, find: Need['find']): Need => ({
    variable,
    isForRequests: true,
    check: () => requireSecret(variable, env),
    find,
  })
  const token = (variable: string, find: Need['find']): Need => ({
    variable,
    isForRequests: true,
    check: () => requireCredential(variable, env),
    find,
  })
  return [
    auth.kind === 'token'
      ? token(auth.tokenEnv, (tree) => firstThere(tree, ['service', 'token_env'], ['service']))
      : token(auth.apiKeyEnv, () => ['service', 'api_key_env']),
    ...extract.queries.flatMap((query) =>
      query.type === 'secret' ? [secret(query.secretEnv, (tree) => queryPath(tree, query.secretEnv))] : [],
    ),
    maskKeyNeed(pipeline, env),
    {
      variable: null,
      isForRequests: false,
      check: async () => {
        requireConsent(transform.secret, allowPlaintext, '')
      },
      find: () => ['transform', 'secret'],
    },
  ]
}

function maskKeyNeed(pipeline: Pipeline, env: Environment): Need {
  return {
    variable: needsMaskKey(pipeline) ? pipeline.transform.maskKeyEnv : null,
    isForRequests: false,
    check: () => readMaskKey(pipeline, env),
    // If the file does not name the key, the policy that needs it is reported.
    find: (tree) =>
      firstThere(
        tree,
        ['transform', 'mask_key_env'],
        ['transform', pipeline.transform.secret === 'hmac' ? 'secret' : 'identity'],
      ),
  }
}

export function needsMaskKey({ extract, transform }: Pipeline): boolean {
  return extract.resource !== 'reports' && (transform.secret === 'hmac' || transform.identity === 'hmac')
}

async function problemOf({ check }: Need): Promise<ExportError | null> {
  try {
    await check()
    return null
  } catch (error) {
    if (isExportError(error, 'config')) return error
    throw error
  }
}

async function missingError(
  missing: readonly Missing[],
  file: string,
  context: Pick<Dependencies, 'env' | 'cwd'>,
): Promise<ExportError> {
  // A submitted pipeline may name any file of this machine, so what is wrong with it is not said.
  const nothing: Tree = { source: { file, path: file, lineAt: null }, root: null, locations: new Map() }
  const { tree } = await rereadTree(file, context).catch(() => ({ tree: nothing }))
  const lines = missing.map(({ problem, find }) => {
    const path = find(tree)
    return `${locationOf(tree, path)}: ${dotted(path)}: ${problem.what}. ${problem.next}`
  })
  return new ExportError({
    kind: 'config',
    what: `The pipeline cannot run: ${missing.length === 1 ? '1 thing is' : `${missing.length} things are`} missing or wrong`,
    where: file,
    next: `Correct the following and try again:\n${lines.join('\n')}`,
  })
}

function firstThere(tree: Tree, ...paths: readonly Path[]): Path {
  return paths.find((path) => locationAt(tree, path).exact) ?? paths[0] ?? []
}

function queryPath(tree: Tree, variable: string): Path {
  const path = ['extract', 'queries']
  const queries = valueAt(tree, path)
  if (!Array.isArray(queries)) return path
  const index = queries.findIndex((query) => isMapping(query) && query.secret_env === variable)
  return index < 0 ? path : [...path, index, 'secret_env']
}

function locationOf(tree: Tree, path: Path): string {
  const { location } = locationAt(tree, path)
  if (location?.from !== 'file') return tree.source.file
  return lineOf(location.source, location.key)
}

const OTHERS = 0o007

/** A warning: the run does it, but it is rarely intended. */
type Caution = {
  readonly message: string
  readonly fields: Readonly<Record<string, string | number>>
}

const MAX_NAMED = 3

/** The warnings before a run. None of them stops it. */
export async function warningsFor(pipeline: Pipeline, env: Environment): Promise<readonly Caution[]> {
  const open = await openSecretFiles(pipeline, env)
  return [
    ...open.map(({ variable, file }) => ({
      message: 'every user of this machine may read or change a file with a secret; chmod 600 it',
      fields: { variable, path: file },
    })),
    ...setTwice(pipeline, env),
    ...(await veryShort(pipeline, env)),
    ...withUnknownFields(pipeline.extract),
    ...withWww(pipeline.extract.queries),
    ...withManyWindows(pipeline),
    ...(await begunElsewhere(pipeline.load)),
  ]
}

function setTwice(pipeline: Pipeline, env: Environment): Caution[] {
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

async function veryShort(pipeline: Pipeline, env: Environment): Promise<Caution[]> {
  const cautions: Caution[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    const secret = await readSecret(name, env).catch(() => null)
    if (secret === null || secret.length >= MIN_SECRET) continue
    const message = `${name} holds fewer than ${MIN_SECRET} characters: messages that contain them become "${LEFT_OUT}"; make sure that it is whole`
    cautions.push({ message, fields: {} })
  }
  return cautions
}

/** The service may know more fields than we do, so others are passed on. */
function withUnknownFields({ include }: Pipeline['extract']): Caution[] {
  return include
    .filter((field) => !OPTIONAL_FIELDS.has(field))
    .map((field) => ({
      message: `extract.include names a field that is not known here, and the service may reject it; \`check --probe\` tests that${didYouMean(field, OPTIONAL_FIELDS)}`,
      fields: { field },
    }))
}

/** A run from another directory than usual would export, and pay for, everything again. */
async function begunElsewhere({ path, besideFile }: Pipeline['load']): Promise<Caution[]> {
  const isThere = (folder: string) => stat(join(folder, '_state')).then(...TRUE_OR_FALSE)
  if (besideFile === undefined || (await isThere(path)) || !(await isThere(besideFile))) return []
  const message =
    'a data set lies beside the pipeline file, and this one begins elsewhere: relative paths start in the working directory'
  return [{ message, fields: { there: besideFile, here: path } }]
}

const TRUE_OR_FALSE = [() => true, () => false] as const

/** The service searches for the exact name, and addresses rarely end in @www.… */
function withWww(queries: readonly Query[]): Caution[] {
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
function withManyWindows({ extract, load }: Pipeline): Caution[] {
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

type OpenSecretFile = { readonly variable: string; readonly file: string }

/** Files with secrets of a pipeline, named by `<NAME>_FILE`, that every user of this machine may read or change. */
async function openSecretFiles(pipeline: Pipeline, env: Environment): Promise<readonly OpenSecretFile[]> {
  const found: OpenSecretFile[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    // If the variable itself is set, the file is not read.
    const file = variable(name, env) === '' ? variable(`${name}_FILE`, env) : ''
    if (file !== '' && (await isOpenToOthers(file))) found.push({ variable: `${name}_FILE`, file })
  }
  return found
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
