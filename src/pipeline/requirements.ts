import { readFileSync } from 'node:fs'
import {
  ExportError,
  isExportError,
  keySet,
  locationOf,
  type Pipeline,
  SECRET_POLICIES,
} from '../core/index.ts'
import {
  catalogVariables,
  type Environment,
  needsMaskKey,
  readMaskKey,
  requireCredential,
  requireSecret,
  variable,
} from './secrets/secrets.ts'

type Dependencies = {
  readonly env: Environment
  /** Consent to `transform.secret: plaintext`, given for this run. */
  readonly allowPlaintext: boolean
  /** What only requests need may be unset. Default: false. */
  readonly sendsNothing?: boolean
}

/**
 * Checks what a run needs besides its file: the token or API key, the secrets that are searched for, the
 * masking key, consent if secrets stay unmasked, and room for addresses.
 * @returns the names of the variables that the run reads
 * @throws ExportError 'config' that names everything missing with file and line
 */
export async function checkRequirements(
  pipeline: Pipeline,
  dependencies: Dependencies,
): Promise<readonly string[]> {
  requireAddressSpace()
  const { env, sendsNothing = false } = dependencies
  const isUnset = (name: string | null): boolean =>
    name !== null && variable(name, env) === '' && variable(`${name}_FILE`, env) === ''
  const needs = needsOf(pipeline, dependencies).filter(
    (need) => !(sendsNothing && need.isForRequests && isUnset(need.variable)),
  )
  const missing: Missing[] = []
  for (const need of needs) {
    const problem = await problemOf(need)
    if (problem !== null) missing.push({ problem, key: need.key })
  }
  if (missing.length > 0) throw missingError(pipeline, missing)
  return needs.flatMap(({ variable }) => (variable === null ? [] : [variable]))
}

// Responses are parsed by WebAssembly, which reserves about 10 GB of addresses, not of memory, for each instance.
const MIN_ADDRESS_SPACE = 24 * 2 ** 30

/** @throws ExportError `config` if a run would fail for want of addresses */
export function requireAddressSpace(): void {
  if (process.platform !== 'linux') return
  const [, limit] = /^Max address space +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  if (limit === undefined || Number(limit) >= MIN_ADDRESS_SPACE) return
  throw new ExportError({
    kind: 'config',
    what: `The process may use ${Math.floor(Number(limit) / 2 ** 30)} GB of address space, and requests need 24`,
    where: 'ulimit -v',
    next: 'Lift that limit (ulimit -v unlimited); to bound memory, use a cgroup: MemoryMax of systemd, --memory of a container.',
  })
}

type Need = {
  /** Its environment variable; null: none. */
  readonly variable: string | null
  /** Only requests need it. */
  readonly isForRequests?: true
  /** @throws ExportError `config` when it is not met */
  readonly check: () => Promise<unknown>
  /** The key of the file that needs it. */
  readonly key: string
}

type Missing = Pick<Need, 'key'> & { readonly problem: ExportError }

function needsOf(pipeline: Pipeline, { env, allowPlaintext }: Dependencies): readonly Need[] {
  const { service, extract, transform, load, secretKeys } = pipeline
  const { auth } = service
  const secretNeed = (name: string, key: string, require: typeof requireSecret): Need => ({
    variable: name,
    isForRequests: true,
    check: () => require(name, env),
    key,
  })
  return [
    auth.kind === 'token'
      ? secretNeed(auth.tokenEnv, keySet(pipeline, 'service.token_env', 'service'), requireCredential)
      : secretNeed(auth.apiKeyEnv, 'service.api_key_env', requireCredential),
    ...extract.queries.flatMap((query) =>
      query.type === 'secret'
        ? [secretNeed(query.secretEnv, secretKeys[query.secretEnv] ?? 'extract.queries', requireSecret)]
        : [],
    ),
    ...catalogVariables(load.catalog).map((name) =>
      secretNeed(
        name,
        'load.catalog',
        load.catalog?.auth?.kind === 'token' ? requireCredential : requireSecret,
      ),
    ),
    maskKeyNeed(pipeline, env),
    {
      variable: null,
      check: async () => {
        requireConsent(transform.secret, allowPlaintext, '')
      },
      key: 'transform.secret',
    },
  ]
}

function maskKeyNeed(pipeline: Pipeline, env: Environment): Need {
  // If the file does not name the key, the policy that needs it is reported.
  const policy = pipeline.transform.secret === 'hmac' ? 'transform.secret' : 'transform.identity'
  return {
    variable: needsMaskKey(pipeline) ? pipeline.transform.maskKeyEnv : null,
    check: () => readMaskKey(pipeline, env),
    key: keySet(pipeline, 'transform.mask_key_env', policy),
  }
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

function missingError(pipeline: Pipeline, missing: readonly Missing[]): ExportError {
  const lines = missing.map(
    ({ key, problem }) => `${locationOf(pipeline, key)}: ${key}: ${problem.what}. ${problem.next}`,
  )
  return new ExportError({
    kind: 'config',
    what: `The pipeline cannot run: ${missing.length === 1 ? '1 thing is' : `${missing.length} things are`} missing or wrong`,
    where: pipeline.file,
    next: `Correct the following and try again:\n${lines.join('\n')}`,
  })
}

/**
 * Checks that the user allowed this run to write secrets unmasked, if the policy does that.
 * @param where the pipeline file
 * @throws ExportError `config`
 */
export function requireConsent(policy: string, allowPlaintext: boolean | undefined, where: string): void {
  if (policy !== 'plaintext' || allowPlaintext === true) return
  const what =
    'plaintext needs consent at each run, and this run was not given leave to write secrets unmasked'
  const others = SECRET_POLICIES.filter((each) => each !== policy)
  const next = `Add --allow-plaintext, or choose ${others.join(', ')}.`
  throw new ExportError({ kind: 'config', what, where, next })
}
