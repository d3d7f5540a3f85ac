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

/** The Iceberg table of a data set in a catalog, which is configured first. @throws ExportError of any kind */
export class RestCatalog {
  readonly #settings: CatalogSettings
  readonly #requests: JsonRequests
  readonly #tokens: TokenSource | null
  #base: string
  /** Between the levels of a namespace, percent-encoded. */
  #separator = '%1F'

  /** @param isOnce whether each request is sent once */
  constructor(settings: CatalogSettings, deps: CatalogDeps, isOnce: boolean) {
    this.#settings = settings
    this.#base = `${settings.uri}/v1/`
    this.#requests = jsonRequests({ ...deps, isOnce, server: 'The catalog', key: 'load.catalog' })
    this.#tokens = tokensOf(settings, deps, this.#requests)
  }

  async configure(): Promise<void> {
    const { uri: given, warehouse } = this.#settings
    const query = warehouse === null ? '' : `?${new URLSearchParams({ warehouse })}`
    const { json, text } = await this.#send('GET', `config${query}`, { expected: [400, 404] })
    const config = Config.safeParse(json)
    if (!config.success) {
      const what = json === null ? text : 'No Iceberg REST catalog answers'
      throw failure('config', `${what} at ${this.#base}config`, CORRECT)
    }
    const properties = { ...config.data.defaults, ...config.data.overrides }
    // What is no text means nothing here.
    const of = (name: string, other: string): string => z.string().catch(other).parse(properties[name])
    const prefix = of('prefix', '')
    this.#separator = of('namespace-separator', this.#separator)
    this.#base = `${of('uri', given).replace(/\/+$/, '')}/v1/${prefix === '' ? '' : `${prefix}/`}`
  }

  /**
   * Whether a run could show its table.
   * @param own table-uuid; null: of a data set whose state cannot be read @param mayMake whether a namespace is made
   * @returns the address of the metadata that is shown; null: there is no table yet
   */
  async look(own: string | null, mayMake: boolean): Promise<string | null> {
    const shown = await this.#load(own)
    if (shown !== null) return shown
    if (mayMake) await this.#makeNamespace()
    // Where nothing may be made, the catalog has to list what it has.
    else if ((await this.#get(this.#namespacePath(), Namespace)) === null)
      await this.#get('namespaces', Namespaces, [])
    return null
  }

  /** Makes the catalog show this metadata, and looks: a response may be lost, and a change accepted and not made. */
  async show(own: string, metadataLocation: string): Promise<void> {
    const { table } = this.#settings
    const shown = await this.#load(own)
    if (isSameAddress(shown, metadataLocation)) return
    if (shown === null) await this.#makeNamespace()
    // Older servers do not know `overwrite`.
    const overwrite = shown === null ? {} : { overwrite: true }
    const body = { name: table, 'metadata-location': metadataLocation, ...overwrite }
    const path = `${this.#namespacePath()}/register`
    const { status, text } = await this.#send('POST', path, { body, expected: REFUSALS })
    if (isSameAddress(await this.#load(own), metadataLocation)) return
    const what = `The catalog does not ${shown === null ? 'register' : 'repoint'} ${catalogTable(this.#settings)}`
    const next =
      shown === null
        ? 'Correct what it names.'
        : `It may not know \`overwrite\` of register: then drop the table there without purging its files (DELETE …/tables/${table}?purgeRequested=false), and run the next command, which registers it.`
    const why = REFUSALS.includes(status) ? text : 'it accepts a change and does not make it'
    throw failure('refused', `${what}: ${why}`, next)
  }

  /** Takes the table out of the catalog, and leaves its files: some catalogs remove them unless they are told so. */
  async drop(own: string | null): Promise<void> {
    if ((await this.#load(own)) === null) return
    await this.#send('DELETE', `${this.#tablePath}?purgeRequested=false`, { expected: [404] })
  }

  close(): Promise<void> {
    return this.#requests.close()
  }

  /** @returns the address of the metadata that is shown; null: the table is not there */
  async #load(own: string | null): Promise<string | null> {
    const found = await this.#get(this.#tablePath, Table)
    if (found === null) return null
    const name = catalogTable(this.#settings)
    const uuid = found.metadata['table-uuid'] ?? null
    if (uuid === null || uuid.toLowerCase() !== own?.toLowerCase())
      throw failure(
        'config',
        `The table ${name} in the catalog is another's (table-uuid ${uuid ?? 'unknown'})`,
        'Choose another load.catalog.table or namespace, or drop that table there without purging its files; it was not touched.',
      )
    const shown = found['metadata-location']
    if (shown != null) return shown
    throw failure(
      'data',
      `The catalog does not say which metadata of ${name} it shows: its response has no metadata-location`,
      'Use a catalog, or a version of it, that sends it, or leave out load.catalog.',
    )
  }

  /** Makes what is missing, outermost level first. */
  async #makeNamespace(levels = this.#settings.namespace): Promise<void> {
    if ((await this.#get(this.#namespacePath(levels), Namespace)) !== null) return
    if (levels.length > 1) await this.#makeNamespace(levels.slice(0, -1))
    const body = { namespace: levels, properties: {} }
    // 409: another has made it meanwhile, or the response to our first attempt was lost.
    await this.#send('POST', 'namespaces', { body, expected: [409] })
  }

  get #tablePath(): string {
    return `${this.#namespacePath()}/tables/${encodeURIComponent(this.#settings.table)}`
  }

  #namespacePath(levels = this.#settings.namespace): string {
    return `namespaces/${levels.map(encodeURIComponent).join(this.#separator)}`
  }

  /** @returns null: 404, if that is expected */
  async #get<T>(path: string, schema: z.ZodType<T>, expected = [404]): Promise<T | null> {
    const { status, json } = await this.#send('GET', path, { expected })
    if (status === 404) return null
    const parsed = schema.safeParse(json)
    if (parsed.success) return parsed.data
    throw failure('data', `The response to GET ${this.#base}${path} is none of a catalog`, CORRECT)
  }

  #send(
    method: JsonRequest['method'],
    path: string,
    request: Omit<JsonRequest, 'method' | 'url'>,
  ): Promise<JsonResponse> {
    return this.#requests.send({ method, url: new URL(this.#base + path), ...request }, this.#tokens)
  }
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
