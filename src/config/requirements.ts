import { resolve } from 'node:path'
import { ExportError, isExportError, isHeaderText, type Pipeline } from '../core/index.ts'
import { parseYaml } from './parse-yaml.ts'
import { readText } from './read-text.ts'
import { type Environment, readMaskKey, readSecret } from './secrets.ts'
import { dotted, isMapping, type Path, placeAt, type Tree, valueAt } from './tree.ts'

export type Surroundings = {
  readonly env: Environment
  /** Working directory, where the name of the pipeline file starts. */
  readonly cwd: string
  /** Consent to `transform.secret: plaintext`, given for this run. */
  readonly allowPlaintext: boolean
}

/**
 * Checks what a run needs besides its file: the token or API key, the secrets that are searched for, the
 * masking key, and consent where secrets stay unmasked.
 * @returns the names of the variables that the run reads
 * @throws ExportError 'config' that names everything missing with file and line
 */
export async function checkRequirements(
  pipeline: Pipeline,
  surroundings: Surroundings,
): Promise<readonly string[]> {
  const needs = needsOf(pipeline, surroundings)
  const missing: Missing[] = []
  for (const need of needs) {
    const problem = await problemOf(need)
    if (problem !== null) missing.push({ problem, find: need.find })
  }
  if (missing.length > 0) throw await missingError(missing, pipeline.file, surroundings.cwd)
  return needs.flatMap(({ variable }) => (variable === null ? [] : [variable]))
}

type Need = {
  /** The environment variable that it is about; null: none. */
  readonly variable: string | null
  /** @throws ExportError `config` when it is not met */
  readonly check: () => Promise<unknown>
  /** Where the file speaks of it. */
  readonly find: (tree: Tree) => Path
}

type Missing = Pick<Need, 'find'> & { readonly problem: ExportError }

function needsOf(pipeline: Pipeline, { env, allowPlaintext }: Surroundings): readonly Need[] {
  const { service, extract, transform } = pipeline
  const { auth } = service
  const secret = (variable: string, find: Need['find']): Need => ({
    variable,
    check: () => requireSecret(variable, env),
    find,
  })
  const token = (variable: string, find: Need['find']): Need => ({
    variable,
    check: async () => requireSendable(variable, await requireSecret(variable, env)),
    find,
  })
  return [
    auth.kind === 'token'
      ? token(auth.tokenEnv, (tree) => firstThere(tree, ['service', 'token_env'], ['service']))
      : token(auth.apiKeyEnv, () => ['service', 'api_key_env']),
    ...extract.queries.flatMap((query) =>
      query.type === 'secret' ? [secret(query.secretEnv, (tree) => queryPath(tree, query.secretEnv))] : [],
    ),
    {
      variable: needsKey(pipeline) ? transform.maskKeyEnv : null,
      check: () => readMaskKey(pipeline, env),
      // Without a name for the key in the file, the policy that needs one is at fault.
      find: (tree) =>
        firstThere(
          tree,
          ['transform', 'mask_key_env'],
          ['transform', transform.secret === 'hmac' ? 'secret' : 'identity'],
        ),
    },
    {
      variable: null,
      check: async () => {
        if (transform.secret === 'plaintext' && !allowPlaintext) throw noConsent()
      },
      find: () => ['transform', 'secret'],
    },
  ]
}

function needsKey({ extract, transform }: Pipeline): boolean {
  return extract.resource !== 'reports' && (transform.secret === 'hmac' || transform.identity === 'hmac')
}

async function requireSecret(name: string, env: Environment): Promise<string> {
  const secret = await readSecret(name, env)
  if (secret !== null) return secret
  const next = `Set it, or ${name}_FILE to a file that holds it.`
  throw new ExportError('config', `the environment variable ${name} is not set`, '', next)
}

function requireSendable(name: string, token: string): void {
  if (isHeaderText(token)) return
  const what = `what ${name} holds can not be sent: there is a line break, another control character or a character outside ASCII in it`
  throw new ExportError('config', what, '', 'Set it to the token or key alone.')
}

function noConsent(): ExportError {
  const next = 'Add --allow-plaintext, or choose redact, drop, partial or hmac.'
  return new ExportError('config', 'plaintext needs consent at each run', '', next)
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

async function missingError(missing: readonly Missing[], file: string, cwd: string): Promise<ExportError> {
  // The file is read again: the pipeline made of it no longer knows its lines.
  const read = await readText(resolve(cwd, file))
  const tree = parseYaml(file, read.ok ? read.text : '').tree
  const lines = missing.map(({ problem, find }) => {
    const path = find(tree)
    return `${lineOf(tree, path)}: ${dotted(path)}: ${problem.what}. ${problem.next}`
  })
  return new ExportError(
    'config',
    `The pipeline cannot run: ${missing.length === 1 ? '1 thing is' : `${missing.length} things are`} missing`,
    file,
    `Correct the following and try again:\n${lines.join('\n')}`,
  )
}

function firstThere(tree: Tree, ...paths: readonly Path[]): Path {
  return paths.find((path) => placeAt(tree, path).exact) ?? paths[0] ?? []
}

function queryPath(tree: Tree, variable: string): Path {
  const path = ['extract', 'queries']
  const queries = valueAt(tree, path)
  if (!Array.isArray(queries)) return path
  const index = queries.findIndex((query) => isMapping(query) && query.secret_env === variable)
  return index < 0 ? path : [...path, index, 'secret_env']
}

function lineOf(tree: Tree, path: Path): string {
  const { place } = placeAt(tree, path)
  if (place?.from !== 'file') return tree.file
  const { line, col } = tree.lineAt(place.key)
  return `${tree.file}:${line}:${col}`
}
