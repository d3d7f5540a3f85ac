import { dirname, resolve } from 'node:path'
import {
  ADDRESS_KEYS,
  type AddressKey,
  type Auth,
  ExportError,
  requireSet,
  type ServiceSettings,
} from '../../core/index.ts'
import { Problems } from '../problems/problems.ts'
import { type PipelineFile, pipelineFile } from '../schema/file-schema.ts'
import { type Environment, requireCredential, variable } from '../secrets/secrets.ts'
import { URL_EXPECTED } from '../values/addresses.ts'

type ServiceFile = PipelineFile['service']

const ADDRESSES = ['base_url', ...ADDRESS_KEYS, 'token_url'] as const

export function resolveService(service: ServiceFile, problems: Problems): ServiceSettings {
  for (const key of ADDRESSES)
    problems.requireHttps(['service', key], service[key], 'tokens and leaked secrets', service.allow_http)
  return {
    baseUrl: service.base_url,
    auth: resolveAuth(service, problems),
    organization: service.organization ?? null,
    addresses: Object.fromEntries(ADDRESS_KEYS.map((key) => [key, service[key]])) as Record<
      AddressKey,
      string
    >,
    requestsPerSecond: service.requests_per_second,
    basicRequestsPerSecond: service.basic_requests_per_second,
    rowsPerSearch: service.rows_per_search,
    timeoutMs: service.timeout,
    retries: service.retries,
    maxResponseBytes: service.max_response_bytes,
  }
}

/** Relative paths start in the folder of the file that names them. */
function resolveAuth(service: ServiceFile, problems: Problems): Auth {
  const { token_env, token_file, api_key_env, api_key_file, token_url, tenant_id } = service
  const fileIn = (key: 'token_file' | 'api_key_file', path: string): string =>
    resolve(dirname(problems.sourceOf(['service', key]).path), path)
  const apiKeyIn = api_key_file === undefined ? api_key_env : fileIn('api_key_file', api_key_file)
  if (apiKeyIn === undefined)
    return {
      kind: 'token',
      secretIn: token_file === undefined ? token_env : fileIn('token_file', token_file),
    }
  const tokenUrl = token_url.startsWith('/') ? new URL(service.base_url).origin + token_url : token_url
  return { kind: 'api-key', secretIn: apiKeyIn, tokenUrl, tenantId: tenant_id ?? null }
}

/** As SPILLWAY_BASE_URL and SPILLWAY_TOKEN say, for requests without a pipeline. @throws ExportError 'config' */
export async function serviceFromEnvironment(env: Environment): Promise<ServiceSettings> {
  const name = 'SPILLWAY_BASE_URL'
  const baseUrl = requireSet(name, variable(name, env), 'environment', `Set it to ${URL_EXPECTED}.`)
  await requireCredential('SPILLWAY_TOKEN', env)
  const service = pipelineFile.shape.service.safeParse({ base_url: baseUrl })
  const problems = new Problems({ root: {}, sources: [{ file: '', path: '', lineAt: null }] })
  const settings = service.success ? resolveService(service.data, problems) : null
  if (settings !== null && problems.none) return settings
  throw new ExportError({
    kind: 'config',
    what: `SPILLWAY_BASE_URL is ${settings === null ? 'no base URL' : 'http to another machine, so the token would travel unencrypted'}`,
    where: 'environment',
    next: `Set it to ${settings === null ? URL_EXPECTED : 'an https URL'}.`,
  })
}
