import * as z from 'zod'
import {
  type CatalogSettings,
  type Clock,
  type ErrorKind,
  ExportError,
  requireSet,
} from '../../core/index.ts'
import {
  clientCredentials,
  givenToken,
  type JsonRequest,
  type JsonRequests,
  type JsonResponse,
  jsonRequests,
  type TokenSource,
  tokenSource,
} from '../../http/index.ts'
import { catalogTable } from '../table.ts'

// Source: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
const Properties = z.record(z.string(), z.unknown()).nullish()
const Config = z
  .object({ defaults: Properties, overrides: Properties })
  .refine(({ defaults, overrides }) => (defaults ?? overrides) != null)
const Namespace = z.object({ namespace: z.array(z.string()) })
const Namespaces = z.object({ namespaces: z.array(z.array(z.string())) })
const Table = z.object({
  'metadata-location': z.string().nullish(),
  metadata: z.object({ 'table-uuid': z.string().nullish() }),
})
export type CatalogDeps = {
  readonly clock: Clock
  /** Reads a secret by the name of its variable; null when it is not set. */
  readonly readSecret: (name: string) => Promise<string | null>
  readonly stop: AbortSignal
}

/** By these a server says that it does not know what it is asked for; 409: that it ignores `overwrite`. */
const REFUSALS = [400, 404, 405, 406, 409, 501]

export type RestCatalog = ReturnType<typeof restCatalog>

/** The Iceberg table of a data set in a catalog, which is configured first. @throws ExportError of any kind */
export function restCatalog(settings: CatalogSettings, deps: CatalogDeps) {
  const name = catalogTable(settings)
  const requests = jsonRequests({ ...deps, server: 'The catalog', key: 'load.catalog' })
  const tokens = tokensOf(settings, deps, requests)
  let base = `${settings.uri}/v1/`
  /** Between the levels of a namespace, percent-encoded; null: the catalog is not configured yet. */
  let separator: string | null = null

  async function configure(isOnce: boolean): Promise<void> {
    const { uri: given, warehouse } = settings
    const query = warehouse === null ? '' : `?${new URLSearchParams({ warehouse })}`
    const { json, text } = await send('GET', `config${query}`, { expected: [400, 404], isOnce })
    const config = Config.safeParse(json)
    if (!config.success) {
      const what = json === null ? text : 'No Iceberg REST catalog answers'
      throw failure('config', `${what} at ${base}config`, CORRECT)
    }
    const properties = { ...config.data.defaults, ...config.data.overrides }
    // What is no text means nothing here.
    const of = (key: string, other: string): string => z.string().catch(other).parse(properties[key])
    const prefix = of('prefix', '')
    separator = of('namespace-separator', '%1F')
    base = `${of('uri', given).replace(/\/+$/, '')}/v1/${prefix === '' ? '' : `${prefix}/`}`
  }

  /**
   * Whether a run could show its table; each request is sent once.
   * @param own table-uuid; null: of a data set whose state cannot be read @param mayMake whether a namespace is made
   * @returns the address of the metadata that is shown; null: there is no table yet
   */
  async function look(own: string | null, mayMake: boolean): Promise<string | null> {
    const shown = await load(own, true)
    if (shown !== null) return shown
    if (mayMake) await makeNamespace(true)
    // Where nothing may be made, the catalog has to list what it has.
    else if ((await get(pathOf(), Namespace, true)) === null) await get('namespaces', Namespaces, true, [])
    return null
  }

  /** Makes the catalog show this metadata, and looks: a response may be lost, and a change accepted and not made. */
  async function show(own: string, metadataLocation: string): Promise<void> {
    const { table } = settings
    const shown = await load(own, false)
    if (isSameAddress(shown, metadataLocation)) return
    if (shown === null) await makeNamespace(false)
    // Older servers do not know `overwrite`.
    const overwrite = shown === null ? {} : { overwrite: true }
    const body = { name: table, 'metadata-location': metadataLocation, ...overwrite }
    const { status, text } = await send('POST', `${pathOf()}/register`, { body, expected: REFUSALS })
    if (isSameAddress(await load(own, false), metadataLocation)) return
    const what = `The catalog does not ${shown === null ? 'register' : 'repoint'} ${name}`
    const why = REFUSALS.includes(status) ? text : 'it accepts a change and does not make it'
    const next =
      shown === null
        ? 'Correct what it names.'
        : `It may not know \`overwrite\` of register: then drop the table there without purging its files (DELETE …/tables/${table}?purgeRequested=false), and run the next command, which registers it.`
    throw failure('refused', `${what}: ${why}`, next)
  }

  /** Takes the table out of the catalog, and leaves its files: some catalogs remove them unless they are told so. */
  async function drop(own: string | null): Promise<void> {
    if ((await load(own, false)) !== null)
      await send('DELETE', `${tablePath()}?purgeRequested=false`, { expected: [404] })
  }

  /** @returns the address of the metadata that is shown; null: the table is not there */
  async function load(own: string | null, isOnce: boolean): Promise<string | null> {
    if (separator === null) await configure(isOnce)
    const found = await get(tablePath(), Table, isOnce)
    if (found === null) return null
    const uuid = found.metadata['table-uuid'] ?? null
    if (uuid === null || uuid.toLowerCase() !== own?.toLowerCase())
      throw failure(
        'config',
        `The table ${name} in the catalog is another's (table-uuid ${uuid ?? 'unknown'})`,
        'Choose another load.catalog.table or namespace, or drop that table there without purging its files; it was not touched.',
      )
    const shown = found['metadata-location']
    if (shown != null && shown !== '') return shown
    throw failure(
      'data',
      `The catalog does not say which metadata of ${name} it shows: its response has no metadata-location`,
      'Use a catalog, or a version of it, that sends it, or leave out load.catalog.',
    )
  }

  /** Makes what is missing, outermost level first. */
  async function makeNamespace(isOnce: boolean, levels = settings.namespace): Promise<void> {
    if ((await get(pathOf(levels), Namespace, isOnce)) !== null) return
    if (levels.length > 1) await makeNamespace(isOnce, levels.slice(0, -1))
    const body = { namespace: levels, properties: {} }
    // 409: another has made it meanwhile, or the response to our first attempt was lost.
    await send('POST', 'namespaces', { body, expected: [409], isOnce })
  }

  function tablePath(): string {
    return `${pathOf()}/tables/${encodeURIComponent(settings.table)}`
  }

  function pathOf(levels = settings.namespace): string {
    return `namespaces/${levels.map(encodeURIComponent).join(separator ?? '')}`
  }

  /** @returns null: 404, if that is expected */
  async function get<T>(
    path: string,
    schema: z.ZodType<T>,
    isOnce: boolean,
    expected = [404],
  ): Promise<T | null> {
    const { status, json } = await send('GET', path, { expected, isOnce })
    if (status === 404) return null
    const parsed = schema.safeParse(json)
    if (parsed.success) return parsed.data
    throw failure('data', `The response to GET ${base}${path} is none of a catalog`, CORRECT)
  }

  function send(
    method: JsonRequest['method'],
    path: string,
    request: Omit<JsonRequest, 'method' | 'url'>,
  ): Promise<JsonResponse> {
    return requests.send({ method, url: new URL(base + path), ...request }, tokens)
  }

  return { look, show, drop, close: requests.close }
}

const CORRECT = 'Correct load.catalog.uri or load.catalog.warehouse.'

function failure(kind: ErrorKind, what: string, next: string): ExportError {
  return new ExportError({ kind, what, where: 'load.catalog', next })
}

/** Some catalogs write the scheme of an address in another way. */
export function isSameAddress(a: string | null, b: string): boolean {
  const normal = (address: string): string =>
    address.replace(/^s3[an]:/, 's3:').replace(/^file:\/*/, 'file:///')
  return a !== null && normal(a) === normal(b)
}

function tokensOf(
  { auth }: CatalogSettings,
  { clock, readSecret }: CatalogDeps,
  requests: JsonRequests,
): TokenSource | null {
  if (auth === null) return null
  const read = async (name: string) => requireSet(name, await readSecret(name), 'load.catalog')
  if (auth.kind === 'token')
    return tokenSource(clock, async (held) => givenToken(auth.tokenEnv, await read(auth.tokenEnv), held))
  const { clientIdEnv, clientSecretEnv } = auth
  const client = { clientId: () => read(clientIdEnv), clientSecret: () => read(clientSecretEnv) }
  return clientCredentials({ ...auth, ...client }, requests, clock)
}
