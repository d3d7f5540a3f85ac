import { ExportError, type ServiceSettings } from '../core/index.ts'
import { pipelineFile } from './file-schema.ts'
import { Problems } from './problems.ts'
import { resolveService } from './resolve-service.ts'
import { type Environment, requireCredential, variable } from './secrets.ts'
import { URL_EXPECTED } from './urls.ts'

/**
 * The service as SPILLWAY_BASE_URL and SPILLWAY_TOKEN (or SPILLWAY_TOKEN_FILE) name it, with the defaults of
 * a pipeline file in everything else; for what is asked without a pipeline.
 * @throws ExportError 'config' that says what to set
 */
export async function serviceFromEnvironment(env: Environment): Promise<ServiceSettings> {
  const baseUrl = variable('SPILLWAY_BASE_URL', env)
  if (!baseUrl) throw wrong('SPILLWAY_BASE_URL is not set', `Set it to ${URL_EXPECTED}.`)
  if (variable('SPILLWAY_TOKEN', env) === '' && variable('SPILLWAY_TOKEN_FILE', env) === '') {
    throw wrong(
      'SPILLWAY_TOKEN is not set',
      'Set it to an access token, or SPILLWAY_TOKEN_FILE to a file with one.',
    )
  }
  await requireCredential('SPILLWAY_TOKEN', env)
  const service = pipelineFile.shape.service.safeParse({ base_url: baseUrl })
  if (!service.success) throw wrong('SPILLWAY_BASE_URL is no base URL', `Set it to ${URL_EXPECTED}.`)
  const problems = new Problems({
    source: { file: '', path: '', lineAt: () => ({ line: 1, col: 1 }) },
    root: {},
    places: new Map(),
  })
  const settings = resolveService(service.data, problems)
  if (problems.none) return settings
  throw wrong(
    'SPILLWAY_BASE_URL is http to another machine, so the token would travel unencrypted',
    'Set it to an https URL.',
  )
}

function wrong(what: string, next: string): ExportError {
  return new ExportError('config', what, 'environment', next)
}
