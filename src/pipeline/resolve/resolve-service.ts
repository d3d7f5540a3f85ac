import {
  ADDRESS_KEYS,
  type AddressKey,
  type Auth,
  ExportError,
  requireSet,
  type ServiceSettings,
} from '../../core/index.ts'
import { Problems } from '../problems/problems.ts'
import { requireAddressSpace } from '../requirements.ts'
import { type PipelineFile, pipelineFile } from '../schema/file-schema.ts'
import { type Environment, emptyIfSet, requireCredential, variable } from '../secrets/secrets.ts'
import { URL_EXPECTED } from '../values/addresses.ts'
import { readTree } from '../yaml/read-tree.ts'

type ServiceFile = PipelineFile['service']

const ADDRESSES = ['base_url', ...ADDRESS_KEYS, 'token_url'] as const

/** Makes addresses absolute, checks their scheme, and chooses the way to authenticate. */
export function resolveService(service: ServiceFile, problems: Problems): ServiceSettings {
  for (const key of ADDRESSES)
    problems.requireHttps(['service', key], service[key], 'tokens and leaked secrets', service.allow_http)
  const { origin } = new URL(service.base_url)
  return {
    baseUrl: service.base_url,
    auth: resolveAuth(service, origin),
    organization: service.organization ?? null,
    addresses: Object.fromEntries(ADDRESS_KEYS.map((key) => [key, service[key]])) as Record<
      AddressKey,
      string
    >,
    requestsPerSecond: service.requests_per_second,
    basicRequestsPerSecond: service.basic_requests_per_second,
    timeoutMs: service.timeout,
    retries: service.retries,
    maxResponseBytes: service.max_response_bytes,
  }
}

function resolveAuth(service: ServiceFile, origin: string): Auth {
  const { token_env: tokenEnv, api_key_env: apiKeyEnv, token_url, tenant_id } = service
  if (apiKeyEnv === undefined) return { kind: 'token', tokenEnv }
  return {
    kind: 'api-key',
    apiKeyEnv,
    tokenUrl: onOrigin(token_url, origin),
    tenantId: tenant_id ?? null,
  }
}

function onOrigin(address: string, origin: string): string {
  return address.startsWith('/') ? origin + address : address
}

/**
 * The service as SPILLWAY_BASE_URL and SPILLWAY_TOKEN (or SPILLWAY_TOKEN_FILE) name it, with the defaults of
 * a pipeline file in everything else; for requests without a pipeline.
 * @throws ExportError 'config' that says what to set
 */
export async function serviceFromEnvironment(env: Environment): Promise<ServiceSettings> {
  requireAddressSpace()
  const name = 'SPILLWAY_BASE_URL'
  const baseUrl = requireSet(
    name,
    variable(name, env) || emptyIfSet(name, env),
    'environment',
    `Set it to ${URL_EXPECTED}.`,
  )
  await requireCredential('SPILLWAY_TOKEN', env)
  const service = pipelineFile.shape.service.safeParse({ base_url: baseUrl })
  if (!service.success) throw wrong('SPILLWAY_BASE_URL is no base URL', `Set it to ${URL_EXPECTED}.`)
  const { tree } = await readTree({ file: '', path: '', text: '{}' }, env)
  const problems = new Problems(tree)
  const settings = resolveService(service.data, problems)
  if (problems.none) return settings
  throw wrong(
    'SPILLWAY_BASE_URL is http to another machine, so the token would travel unencrypted',
    'Set it to an https URL.',
  )
}

function wrong(what: string, next: string): ExportError {
  return new ExportError({ kind: 'config', what, where: 'environment', next })
}
