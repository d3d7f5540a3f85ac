import * as z from 'zod'
import { type CatalogSettings, ExportError, isExportError, plainError, requireSet } from '../../core/index.ts'
import {
  clientCredentials,
  givenToken,
  type JsonRequest,
  JsonRequests,
  type JsonResponse,
  type TokenSource,
  tokenSource,
} from '../../http/index.ts'
import { type CatalogDeps, CatalogError } from '../table.ts'

const SAFE =
  'The rows are safe; the catalog shows the state before, and the next command that changes the data set, such as `spillway tables`, brings it in line.'

/** A table as a catalog shows it; null: it does not say. */
export type CatalogTable = { readonly uuid: string | null; readonly metadataLocation: string | null }

// Source: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
const Config = z.object({
  defaults: z.record(z.string(), z.string().nullish()).nullish(),
  overrides: z.record(z.string(), z.string().nullish()).nullish(),
})
const Loaded = z.object({
  'metadata-location': z.string().nullish(),
  metadata: z.object({ 'table-uuid': z.string().nullish() }),
})

/** By these a server says that it does not know what it is asked for; 409: that it ignores `overwrite`. */
const REFUSALS = [400, 404, 405, 406, 409, 501]

export class RestCatalog {
  readonly #send: Send
  readonly #settings: CatalogSettings
  /** Ends with a slash. */
  readonly #base: string
  /** Between the levels of a namespace, percent-encoded. */
  readonly #separator: string

  private constructor(send: Send, settings: CatalogSettings, properties: Properties) {
    this.#send = send
    this.#settings = settings
    const { uri = settings.uri, prefix = '', 'namespace-separator': separator = '%1F' } = properties
    this.#base = `${uri.replace(/\/+$/, '')}/v1/${prefix === '' ? '' : `${prefix}/`}`
    this.#separator = separator
  }

  /** @throws CatalogError of any kind; ExportError `interrupted` */
  static async with<T>(
    settings: CatalogSettings,
    deps: CatalogDeps,
    work: (catalog: RestCatalog) => Promise<T>,
  ): Promise<T> {
    const { clock, stop, isBrief = false } = deps
    const limits = isBrief ? { timeoutMs: 10_000, retries: 0 } : { timeoutMs: 60_000, retries: 4 }
    const requests = new JsonRequests({ clock, stop, ...limits, server: 'The catalog', key: 'load.catalog' })
    const tokens = tokensOf(settings, deps, requests)
    const send: Send = (request) => requests.send(request, tokens)
    try {
      return await work(new RestCatalog(send, settings, await propertiesOf(send, settings)))
    } catch (error) {
      if (!isExportError(error) || error.kind === 'interrupted') throw error
      const next = error.kind === 'config' ? error.next : `${error.next} ${SAFE}`
      throw new CatalogError({ ...plainError(error), next, cause: error })
    } finally {
      await requests.close()
    }
  }

  /** null: it is not there */
  async table(): Promise<CatalogTable | null> {
    const url = this.#url(this.#tablePath)
    const { status, json } = await this.#send({ method: 'GET', url, expected: [404] })
    if (status === 404) return null
    const loaded = Loaded.safeParse(json)
    if (!loaded.success) {
      const what = 'The response describes no table'
      throw new ExportError({ kind: 'data', what, where: `GET ${url}`, next: 'Check load.catalog.' })
    }
    const { 'metadata-location': metadataLocation = null, metadata } = loaded.data
    return { uuid: metadata['table-uuid'] ?? null, metadataLocation }
  }

  /** Makes what is missing of the namespace, outermost level first. */
  async makeNamespace(levels = this.#settings.namespace): Promise<void> {
    const url = this.#url(this.#namespacePath(levels))
    if ((await this.#send({ method: 'GET', url, expected: [404] })).status !== 404) return
    if (levels.length > 1) await this.makeNamespace(levels.slice(0, -1))
    const body = { namespace: levels, properties: {} }
    // 409: another has made it meanwhile, or the response to our first attempt was lost.
    await this.#send({ method: 'POST', url: this.#url('namespaces'), body, expected: [409] })
  }

  /** @param overwrite whether the table is there @returns how the catalog refuses it; null: it does not */
  async register(metadataLocation: string, overwrite: boolean): Promise<JsonResponse | null> {
    const response = await this.#send({
      method: 'POST',
      url: this.#url(`${this.#namespacePath()}/register`),
      body: {
        name: this.#settings.table,
        'metadata-location': metadataLocation,
        // Older servers do not know it.
        ...(overwrite ? { overwrite } : {}),
      },
      expected: REFUSALS,
    })
    return REFUSALS.includes(response.status) ? response : null
  }

  /** Takes the table out of the catalog, and leaves its files: some catalogs remove them unless they are told so. */
  async drop(): Promise<void> {
    const url = this.#url(`${this.#tablePath}?purgeRequested=false`)
    await this.#send({ method: 'DELETE', url, expected: [404] })
  }

  get #tablePath(): string {
    return `${this.#namespacePath()}/tables/${encodeURIComponent(this.#settings.table)}`
  }

  #namespacePath(levels = this.#settings.namespace): string {
    return `namespaces/${levels.map(encodeURIComponent).join(this.#separator)}`
  }

  #url(path: string): URL {
    return new URL(this.#base + path)
  }
}

type Properties = Readonly<Record<string, string>>

type Send = (request: JsonRequest) => Promise<JsonResponse>

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

async function propertiesOf(send: Send, { uri, warehouse }: CatalogSettings): Promise<Properties> {
  const query = warehouse === null ? '' : `?${new URLSearchParams({ warehouse })}`
  const url = new URL(`${uri}/v1/config${query}`)
  const { status, json, text } = await send({ method: 'GET', url, expected: [400, 404] })
  const config = Config.safeParse(json)
  if (status === 200 && config.success) {
    const given = Object.entries({ ...config.data.defaults, ...config.data.overrides })
    return Object.fromEntries(given.flatMap(([name, value]) => (value == null ? [] : [[name, value]])))
  }
  throw new ExportError({
    kind: 'config',
    what: `${status === 200 ? 'No Iceberg REST catalog answers' : text} at ${url.origin}${url.pathname}`,
    where: 'load.catalog',
    next: 'Correct load.catalog.uri or load.catalog.warehouse.',
  })
}
