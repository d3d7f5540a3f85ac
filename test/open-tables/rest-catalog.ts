import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { portOf } from '../support/listening.ts'

/** What happens to a request: a status in place of the work, no connection before it, or none after it. */
export type Fault = number | 'refused' | 'lost' | null

type Table = { location: string; uuid: string }
type Answer = { readonly status: number; readonly body?: object }

export type RestCatalog = Awaited<ReturnType<typeof startCatalog>>

/**
 * An Iceberg REST catalog in memory, over tables on this disk, as its specification has it
 * (https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml). It is stricter than any: what the
 * specification does not name is refused, and a table whose metadata is not there cannot be loaded.
 */
export async function startCatalog() {
  const catalog = {
    url: '',
    /** Tokens that are accepted; null: none is needed. */
    tokens: null as Set<string> | null,
    /** Client id and secret that get a token each time. */
    client: null as { id: string; secret: string; scope: string | null } | null,
    issued: 0,
    /** Seconds; null: it is not told. */
    expiresIn: 3600 as number | string | null,
    warehouse: 'lake',
    prefix: 'w1',
    /** Whether a warehouse that is unknown is configured, too. */
    configuresAny: false,
    overrides: {} as Record<string, unknown>,
    /** The status of `register` with `overwrite`: of servers that do not know it; 200: it does nothing; null: it is known. */
    overwrite: null as number | null,
    /** Whether namespaces may be made. */
    mayMake: true,
    namespaces: new Set<string>(),
    tables: new Map<string, Table>(),
    /** Every request that came, also one that failed. */
    requests: [] as string[],
    /** All headers and bodies, to look for secrets. */
    received: [] as string[],
    onRequest: (_line: string, _index: number): Fault | Promise<Fault> => null,
    /** What is sent in place of a body; a text as it is. */
    onResponse: (_line: string, body: object): object | string => body,
    table: (name = 'leaks.acme') => catalog.tables.get(name),
  }

  function config(query: URLSearchParams): Answer {
    only(query, 'warehouse')
    const warehouse = query.get('warehouse')
    if (warehouse !== catalog.warehouse && !catalog.configuresAny) throw bad('Unknown warehouse')
    const prefix = warehouse === catalog.warehouse ? catalog.prefix : `${warehouse}`
    const overrides = { prefix, ...catalog.overrides }
    return { status: 200, body: { defaults: { 'some-default': 'x' }, overrides } }
  }

  function token(request: IncomingMessage, sent: string): Answer {
    const { authorization, 'content-type': type } = request.headers
    if (authorization !== undefined || type !== 'application/x-www-form-urlencoded')
      return { status: 400, body: { error: 'invalid_request' } }
    const { id, secret, scope } = catalog.client!
    const wanted = { grant_type: 'client_credentials', client_id: id, client_secret: secret }
    const form = new URLSearchParams({ ...wanted, ...(scope === null ? {} : { scope }) })
    if (`${form}` !== `${new URLSearchParams(sent)}`)
      return { status: 401, body: { error: 'invalid_client', error_description: `not ${secret}` } }
    const issued = `issued-token-${++catalog.issued}`
    catalog.tokens = new Set([issued])
    const { expiresIn } = catalog
    const life = expiresIn === null ? {} : { expires_in: expiresIn }
    return { status: 200, body: { access_token: issued, token_type: 'bearer', ...life } }
  }

  function load(name: string): Answer {
    const table = catalog.tables.get(name)
    if (table === undefined) throw new Problem(404, 'NoSuchTableException', `Table does not exist: ${name}`)
    const metadata = metadataAt(table.location)
    if (metadata === null)
      throw new Problem(500, 'NotFoundException', `File does not exist: ${table.location}`)
    return { status: 200, body: { 'metadata-location': table.location, metadata, config: {} } }
  }

  function register(namespace: string, sent: string): Answer {
    const body = json(sent)
    only(body, 'name', 'metadata-location', ...(catalog.overwrite === 400 ? [] : ['overwrite']))
    const { name, overwrite = false, 'metadata-location': location } = body
    if (typeof name !== 'string' || typeof location !== 'string' || typeof overwrite !== 'boolean')
      throw bad('Malformed request')
    if (!catalog.namespaces.has(namespace)) throw new Problem(404, 'NoSuchNamespaceException', namespace)
    const key = `${namespace}.${name}`
    const found = catalog.tables.get(key)
    if (overwrite && catalog.overwrite !== null && catalog.overwrite !== 409) {
      if (catalog.overwrite !== 200)
        throw new Problem(catalog.overwrite, 'UnsupportedOperationException', 'overwrite')
      return load(key)
    }
    if (found !== undefined && (!overwrite || catalog.overwrite === 409))
      throw new Problem(409, 'AlreadyExistsException', `Table already exists: ${key}`)
    const metadata = metadataAt(location)
    if (metadata === null) throw bad(`No metadata at ${location}`)
    catalog.tables.set(key, { location, uuid: metadata['table-uuid'] })
    return load(key)
  }

  function make(sent: string): Answer {
    const body = json(sent)
    only(body, 'namespace', 'properties')
    if (!catalog.mayMake) throw new Problem(403, 'ForbiddenException', 'May not create namespaces')
    const levels = body.namespace as string[]
    const name = levels.join('.')
    const parent = levels.slice(0, -1).join('.')
    if (parent !== '' && !catalog.namespaces.has(parent))
      throw new Problem(404, 'NoSuchNamespaceException', parent)
    if (catalog.namespaces.has(name)) throw new Problem(409, 'AlreadyExistsException', name)
    catalog.namespaces.add(name)
    return { status: 200, body: { namespace: levels, properties: {} } }
  }

  function work(request: IncomingMessage, sent: string): Answer {
    const { pathname, searchParams: query } = new URL(request.url!, 'http://host')
    const { method = '' } = request
    if (pathname === '/api/v1/oauth/tokens' && method === 'POST') return token(request, sent)
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (catalog.tokens !== null && !catalog.tokens.has(bearer ?? ''))
      throw new Problem(401, 'NotAuthorizedException', `Token ${bearer} is not valid`)
    if (method === 'POST' && request.headers['content-type'] !== 'application/json') throw bad('No JSON')
    if (pathname === '/api/v1/config' && method === 'GET') return config(query)
    const start = `/api/v1/${catalog.prefix}/namespaces`
    if (!pathname.startsWith(start)) throw new Problem(404, 'NotFoundException', pathname)
    const [, encoded, kind, table, ...more] = pathname.slice(start.length).split('/')
    if (more.length > 0) throw new Problem(404, 'NotFoundException', pathname)
    const namespace = encoded === undefined ? '' : decodeURIComponent(encoded).replaceAll('\u001f', '.')
    if (encoded === undefined) {
      if (method === 'POST') return make(sent)
      only(query, 'parent', 'pageToken', 'pageSize')
      const isTop = query.get('parent') === null || query.get('parent') === ''
      const names = [...catalog.namespaces].filter((name) => isTop && !name.includes('.'))
      return { status: 200, body: { namespaces: names.map((name) => [name]) } }
    }
    const route = `${method} ${kind ?? ''}${table === undefined ? '' : '/…'}`
    const known = catalog.namespaces.has(namespace)
    switch (route) {
      case 'GET ':
        if (!known) throw new Problem(404, 'NoSuchNamespaceException', namespace)
        return { status: 200, body: { namespace: namespace.split('.'), properties: {} } }
      case 'POST register':
        only(query)
        return register(namespace, sent)
      case 'GET tables': {
        const names = [...catalog.tables.keys()].map((key) => key.slice(namespace.length + 1))
        const identifiers = names.map((name) => ({ namespace: namespace.split('.'), name }))
        return { status: 200, body: { identifiers } }
      }
      case 'GET tables/…':
        only(query, 'snapshots')
        return load(`${namespace}.${table}`)
      case 'HEAD tables/…':
        load(`${namespace}.${table}`)
        return { status: 204 }
      case 'DELETE tables/…':
        only(query, 'purgeRequested')
        // As Lakekeeper, which takes the files with it unless it is told not to.
        if (query.get('purgeRequested') !== 'false')
          throw new Problem(500, 'PurgedException', 'The files are gone')
        load(`${namespace}.${table}`)
        catalog.tables.delete(`${namespace}.${table}`)
        return { status: 204 }
      default:
        throw new Problem(405, 'MethodNotAllowed', route)
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request)
    const line = `${request.method} ${request.url}`
    catalog.received.push(`${line} ${JSON.stringify(request.headers)} ${sent}`)
    const fault = await catalog.onRequest(line, catalog.requests.push(line) - 1)
    if (fault === 'refused') return void request.socket.destroy()
    const { status, body } = answerOf(() => {
      if (typeof fault === 'number') throw new Problem(fault, 'ServerException', 'as the test has it')
      return work(request, sent)
    })
    if (fault === 'lost') return void request.socket.destroy()
    response.writeHead(status, { 'content-type': 'application/json' })
    const given = body === undefined ? '' : catalog.onResponse(line, body)
    response.end(typeof given === 'string' ? given : JSON.stringify(given))
  }

  const server = createServer((request, response) => void respond(request, response))
  catalog.url = `http://127.0.0.1:${await portOf(server)}/api`
  return catalog
}

class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message)
  }
}

const bad = (message: string): Problem => new Problem(400, 'BadRequestException', message)

function answerOf(work: () => Answer): Answer {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { status: code, type, message } = error
    return { status: code, body: { error: { message, type, code } } }
  }
}

/** Refuses what the specification does not name. */
function only(given: URLSearchParams | object, ...names: string[]): void {
  const keys = given instanceof URLSearchParams ? [...given.keys()] : Object.keys(given)
  for (const key of keys) if (!names.includes(key)) throw bad(`Unknown: ${key}`)
}

function json(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text)
  } catch {
    throw bad('No JSON')
  }
}

function metadataAt(location: string): { 'table-uuid': string } | null {
  const path = fileURLToPath(location)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null
}
