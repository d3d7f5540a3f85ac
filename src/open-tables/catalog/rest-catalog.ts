import * as z from 'zod'
import {
  type CatalogSettings,
  type ErrorKind,
  isExportError,
  plainError,
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
import { type CatalogDeps, CatalogError, catalogTable } from '../table.ts'

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
type Table = z.output<typeof Table>

/** By these a server says that it does not know what it is asked for; 409: that it ignores `overwrite`. */
const REFUSALS = [400, 404, 405, 406, 409, 501]

/** A table may be changed between two looks at it, but not for ever. */
const MAX_LOOKS = 4

/** The Iceberg table of a data set in a catalog. Methods throw CatalogError of any kind, or ExportError `interrupted`. */
export class RestCatalog {
  readonly #settings: CatalogSettings
  readonly #requests: JsonRequests
  readonly #tokens: TokenSource | null
  #base: string
  /** Between the levels of a namespace, percent-encoded; null: the catalog is not asked yet. */
  #separator: string | null = null

  constructor(settings: CatalogSettings, deps: CatalogDeps) {
    this.#settings = settings
    this.#base = `${settings.uri}/v1/`
    this.#requests = jsonRequests({ ...deps, server: 'The catalog', key: 'load.catalog' })
    this.#tokens = tokensOf(settings, deps, this.#requests)
  }

  /**
   * Whether a run could show its table: all on the way there has to answer. Each request is sent once.
   * @param own table-uuid; null: of a data set whose state cannot be read @param mayMake whether a namespace is made
   * @returns the address of the metadata that is shown; null: there is no table yet
   */
  async look(own: string | null, mayMake: boolean): Promise<string | null> {
    const found = await this.#load(own, true)
    if (found !== null) return this.#shown(found)
    return this.#openNamespace(mayMake, true)
  }

  /** Makes the catalog show this metadata. Each change is followed by another look: a response may be lost. */
  async show(own: string, metadataLocation: string): Promise<void> {
    const { namespace, table } = this.#settings
    let tried = { overwrite: false, refusal: null as string | null }
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const found = await this.#load(own, false)
      if (found !== null && isSameAddress(this.#shown(found), metadataLocation)) return
      const overwrite = found !== null
      if (tried.refusal !== null && tried.overwrite === overwrite) break
      if (!overwrite) await this.#openNamespace(true, false)
      const path = `${this.#namespacePath(namespace)}/register`
      // Older servers do not know `overwrite`.
      const body = { name: table, 'metadata-location': metadataLocation, ...(overwrite && { overwrite }) }
      const { status, text } = await this.#send('POST', path, { body, expected: REFUSALS })
      tried = { overwrite, refusal: REFUSALS.includes(status) ? text : null }
    }
    const { overwrite, refusal } = tried
    const what = `The catalog does not ${overwrite ? 'repoint' : 'register'} ${catalogTable(this.#settings)}`
    const next = !overwrite
      ? 'Correct what it names.'
      : `It may not know \`overwrite\` of register: then drop the table there without purging its files (DELETE …/tables/${table}?purgeRequested=false), and run the next command, which registers it.`
    throw failure('refused', `${what}: ${refusal ?? 'it accepts a change and does not make it'}`, next)
  }

  /** Takes the table out of the catalog, and leaves its files: some catalogs remove them unless they are told so. */
  async drop(own: string | null): Promise<void> {
    if ((await this.#load(own, false)) === null) return
    await this.#send('DELETE', `${this.#tablePath}?purgeRequested=false`, { expected: [404] })
  }

  close(): Promise<void> {
    return this.#requests.close()
  }

  /** null: it is not there */
  async #load(own: string | null, isOnce: boolean): Promise<Table | null> {
    if (this.#separator === null) await this.#configure(isOnce)
    const found = await this.#get(this.#tablePath, Table, isOnce)
    if (found === null) return null
    const uuid = found.metadata['table-uuid'] ?? null
    if (uuid !== null && uuid.toLowerCase() === own?.toLowerCase()) return found
    throw failure(
      'config',
      `The table ${catalogTable(this.#settings)} in the catalog is another's (table-uuid ${uuid ?? 'unknown'})`,
      'Choose another load.catalog.table or namespace, or drop that table there without purging its files; it was not touched.',
    )
  }

  #shown({ 'metadata-location': shown }: Table): string {
    if (shown != null) return shown
    throw failure(
      'data',
      `The catalog does not say which metadata of ${catalogTable(this.#settings)} it shows: its response has no metadata-location`,
      'Use a catalog, or a version of it, that sends it, or leave out load.catalog.',
    )
  }

  /** Makes what is missing, outermost level first. Where nothing may be made, the catalog has to list what it has. */
  async #openNamespace(mayMake: boolean, isOnce: boolean, levels = this.#settings.namespace): Promise<null> {
    if ((await this.#get(this.#namespacePath(levels), Namespace, isOnce)) !== null) return null
    if (!mayMake) return this.#get('namespaces', Namespaces, isOnce, []).then(() => null)
    if (levels.length > 1) await this.#openNamespace(mayMake, isOnce, levels.slice(0, -1))
    const body = { namespace: levels, properties: {} }
    // 409: another has made it meanwhile, or the response to our first attempt was lost.
    await this.#send('POST', 'namespaces', { body, isOnce, expected: [409] })
    return null
  }

  async #configure(isOnce: boolean): Promise<void> {
    const { uri: given, warehouse } = this.#settings
    const query = warehouse === null ? '' : `?${new URLSearchParams({ warehouse })}`
    const { json, text } = await this.#send('GET', `config${query}`, { isOnce, expected: [400, 404] })
    const config = Config.safeParse(json)
    if (!config.success) {
      const what = json === null ? text : 'No Iceberg REST catalog answers'
      throw failure('config', `${what} at ${this.#base}config`, CORRECT)
    }
    const properties = { ...config.data.defaults, ...config.data.overrides }
    // What is no text means nothing here.
    const of = (name: string, other: string): string => z.string().catch(other).parse(properties[name])
    const prefix = of('prefix', '')
    this.#separator = of('namespace-separator', '%1F')
    this.#base = `${of('uri', given).replace(/\/+$/, '')}/v1/${prefix === '' ? '' : `${prefix}/`}`
  }

  get #tablePath(): string {
    return `${this.#namespacePath(this.#settings.namespace)}/tables/${encodeURIComponent(this.#settings.table)}`
  }

  #namespacePath(levels: readonly string[]): string {
    return `namespaces/${levels.map(encodeURIComponent).join(this.#separator ?? '')}`
  }

  /** @returns null: 404, if that is expected */
  async #get<T>(path: string, schema: z.ZodType<T>, isOnce: boolean, expected = [404]): Promise<T | null> {
    const { status, json } = await this.#send('GET', path, { isOnce, expected })
    if (status === 404) return null
    const parsed = schema.safeParse(json)
    if (parsed.success) return parsed.data
    throw failure('data', `The response to GET ${this.#base}${path} is none of a catalog`, CORRECT)
  }

  async #send(
    method: JsonRequest['method'],
    path: string,
    request: Omit<JsonRequest, 'method' | 'url'>,
  ): Promise<JsonResponse> {
    try {
      return await this.#requests.send({ method, url: new URL(this.#base + path), ...request }, this.#tokens)
    } catch (error) {
      if (!isExportError(error) || error.kind === 'interrupted') throw error
      throw new CatalogError({ ...plainError(error), cause: error })
    }
  }
}

const CORRECT = 'Correct load.catalog.uri or load.catalog.warehouse.'

function failure(kind: ErrorKind, what: string, next: string): CatalogError {
  return new CatalogError({ kind, what, where: 'load.catalog', next })
}

/** Some catalogs write the scheme of an address in another way. */
export function isSameAddress(a: string, b: string): boolean {
  const normal = (address: string): string =>
    address.replace(/^s3[an]:/, 's3:').replace(/^file:\/*/, 'file:///')
  return normal(a) === normal(b)
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
