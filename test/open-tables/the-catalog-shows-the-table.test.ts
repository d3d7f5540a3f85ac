import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { refusal } from '../disk/errors.ts'
import { shardPaths } from '../support/read-shards.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { type Cataloged, CHANGES, cataloged, OURS, TOKEN } from './cataloged.ts'
import { type Fault, type RestCatalog, startCatalog } from './rest-catalog.ts'
import { icebergShards, metadataOf } from './world.ts'

/** The metadata that the catalog shows, by the number of its version; 0: none. */
function shownVersion(catalog: RestCatalog): number {
  return Number(/\/v(\d+)\.metadata\.json$/.exec(catalog.table()?.location ?? '')?.[1] ?? 0)
}

/** What a reader of the catalog finds: every file that the table names has to be there. */
async function readThrough({ world, catalog }: Cataloged): Promise<readonly string[]> {
  const { location } = catalog.table()!
  const metadata = JSON.parse(await readFile(fileURLToPath(location), 'utf8'))
  return icebergShards(world.out, metadata)
}

async function expectInLine({ world, catalog }: Cataloged): Promise<void> {
  expect(await readThrough({ world, catalog })).toEqual(await world.shards())
  expect(catalog.table()).toMatchObject({ uuid: (await world.manifest()).data_set_id })
}

it('a first run makes the namespace and registers the table; one that changes nothing only looks', async () => {
  const { world, catalog } = await cataloged()
  expect(await world.run()).toMatchObject({ status: 'complete', error: null })
  const table = '/api/v1/w1/namespaces/leaks/tables/acme'
  const config = 'GET /api/v1/config?warehouse=lake'
  // Before anything is sent to the service, and at the end.
  expect(catalog.requests).toEqual([
    config,
    `GET ${table}`,
    'GET /api/v1/w1/namespaces/leaks',
    'POST /api/v1/w1/namespaces',
    `GET ${table}`,
    'GET /api/v1/w1/namespaces/leaks',
    'POST /api/v1/w1/namespaces/leaks/register',
    `GET ${table}`,
  ])
  await expectInLine({ world, catalog })
  catalog.requests.length = 0
  await world.run()
  expect(catalog.requests).toEqual([config, `GET ${table}`, `GET ${table}`])
})

it.each(some(Object.entries(CHANGES), 3))(
  'after %s the catalog shows the table as it is, and at no request a reader misses a file',
  async (_, change) => {
    const { world, catalog } = await cataloged()
    await world.runUntil('2024-03-01')
    const before = shownVersion(catalog)
    const failures: unknown[] = []
    catalog.onRequest = async () => {
      await readThrough({ world, catalog }).catch((error: unknown) => failures.push(error))
      return null
    }
    await change(world)
    expect(failures).toEqual([])
    expect(shownVersion(catalog)).toBeGreaterThan(before)
    await expectInLine({ world, catalog })
  },
)

it('a namespace of several levels is made level by level, and found by the separator of the server', async () => {
  const { world, catalog } = await cataloged({ namespace: 'security.leaks' })
  await world.run()
  expect([...catalog.namespaces]).toEqual(['security', 'security.leaks'])
  expect(catalog.table('security.leaks.acme')).toBeDefined()
  catalog.overrides = { 'namespace-separator': '%2E' }
  catalog.requests.length = 0
  await world.run()
  expect(catalog.requests.at(-1)).toBe('GET /api/v1/w1/namespaces/security%2Eleaks/tables/acme')
})

it('the address and the prefix are those that the catalog configures; what is no text is ignored', async () => {
  const { world, catalog } = await cataloged()
  const other = await startCatalog()
  other.prefix = 'a/b'
  const noTexts = { 'cache-seconds': 30, nested: { a: [1] }, 'namespace-separator': 31 }
  catalog.overrides = { uri: `${other.url}/`, prefix: 'a/b', ...noTexts }
  expect(await world.run()).toMatchObject({ status: 'complete', error: null })
  expect(other.requests.every((line) => line.includes('/v1/a/b/namespaces'))).toBe(true)
  await expectInLine({ world, catalog: other })
})

it('another table that comes in the middle of a run is not touched either; rows are safe', async () => {
  const { world, catalog } = await cataloged()
  const other = await cataloged()
  await other.world.run()
  const theirs = other.catalog.table()!
  catalog.onRequest = (_, index) => {
    if (index === 2) catalog.tables.set('leaks.acme', { ...theirs })
    return null
  }
  expect(await world.run()).toMatchObject({ status: 'failed', rows: 5, error: { kind: 'config' } })
  expect(catalog.table()).toEqual(theirs)
  await expect(world.bring()).rejects.toMatchObject({ kind: 'config' })
  await expect(CHANGES.forget(world)).rejects.toMatchObject({ kind: 'config' })
})

const FAULTS: readonly Fault[] = ['refused', 'lost', 503, 500, 429]

/** From one request to try to the next. */
const STEP = THOROUGH ? 1 : 6

it('a request that fails once is repeated, whichever it is', async () => {
  for (const change of some(['a run', 'compact'] as const, 1)) {
    for (let at = 0, reached = true; reached; at += STEP) {
      for (const fault of THOROUGH ? FAULTS : [FAULTS[at % FAULTS.length]!]) {
        const { world, catalog } = await cataloged()
        await world.runUntil('2024-03-01')
        catalog.requests.length = 0
        catalog.onRequest = (_, index) => (index === at ? fault : null)
        await CHANGES[change](world)
        reached = catalog.requests.length > at
        await expectInLine({ world, catalog })
      }
    }
  }
})

it('a catalog that fails from some request on leaves the rows safe and the former table whole; the next command mends it', async () => {
  for (const change of some(Object.values(CHANGES), 1)) {
    for (let at = 0; at < 20; at += STEP) {
      const { world, catalog } = await cataloged()
      await world.runUntil('2024-03-01')
      const before = shownVersion(catalog)
      catalog.requests.length = 0
      catalog.onRequest = (_, index) => (index < at ? null : 'lost')
      const ended = await Promise.resolve<unknown>(change(world)).catch((error) => ({ error }))
      const { error } = ended as { error?: { kind: string; message: string } }
      catalog.onRequest = () => null
      if (error == null) {
        expect(catalog.requests.length).toBeGreaterThan(at - STEP)
        expect(catalog.requests.length).toBeLessThanOrEqual(at)
        break
      }
      const message = expect.stringContaining('The rows are safe')
      expect(error).toMatchObject({ kind: 'transient', message })
      if (shownVersion(catalog) === before)
        expect((await readThrough({ world, catalog })).length).toBeGreaterThan(0)
      const shown = { table: 'leaks.acme', inLine: true }
      expect(await world.bring()).toMatchObject({ failure: null, catalog: shown })
      await expectInLine({ world, catalog })
      await world.run()
      expect(existsSync(join(world.out, '_SUCCESS'))).toBe(true)
      await expectInLine({ world, catalog })
      expect(await shardPaths(world.out)).toEqual(await world.shards())
    }
  }
})

it('metadata that the catalog still points to stays through several commits, and goes once it has moved on', async () => {
  const { world, catalog } = await cataloged()
  world.load = { ...world.load, table_snapshots: 1 }
  await world.runUntil('2024-02-01')
  const shown = catalog.table()!.location
  catalog.onRequest = () => 503
  for (const until of ['2024-03-01', '2024-04-01']) {
    expect(await world.runUntil(until)).toMatchObject({ status: 'failed', error: { kind: 'transient' } })
    expect(existsSync(fileURLToPath(shown))).toBe(true)
    expect(await readThrough({ world, catalog })).toHaveLength(2)
  }
  await CHANGES.redo(world)
  expect(await readThrough({ world, catalog })).toHaveLength(2)
  catalog.onRequest = () => null
  await world.run()
  expect(existsSync(fileURLToPath(shown))).toBe(false)
  await expectInLine({ world, catalog })
  expect(await world.versions()).toHaveLength(1)
})

it('a forget that the catalog cannot follow says which files stay, and the next command removes them', async () => {
  const { world, catalog } = await cataloged()
  await world.run()
  const gone = (await world.shards())[0]!
  catalog.onRequest = () => 503
  await expect(CHANGES.forget(world)).rejects.toMatchObject({
    kind: 'transient',
    message: expect.stringMatching(/these files stay.*part-/s),
  })
  expect(existsSync(join(world.out, gone))).toBe(true)
  catalog.onRequest = () => null
  expect(existsSync(join(world.out, '_SUCCESS'))).toBe(false)
  await world.bring()
  expect(existsSync(join(world.out, gone))).toBe(false)
  expect(existsSync(join(world.out, '_SUCCESS'))).toBe(true)
  expect(await world.versions()).toHaveLength(1)
})

it.each(some([200, 400, 406, 501, 409], 2))(
  'a server that does not know overwrite (%i) is told of in words; dropped there, the table is registered again',
  async (status) => {
    const { world, catalog } = await cataloged()
    catalog.overwrite = status
    expect(await world.runUntil('2024-02-01')).toMatchObject({ error: null })
    expect(await world.runUntil('2024-04-01')).toMatchObject({
      status: 'failed',
      partitions: { failed: 0, pending: 0 },
      error: { kind: 'refused', message: expect.stringMatching(/overwrite.*purgeRequested=false/s) },
    })
    expect(await readThrough({ world, catalog })).toHaveLength(2)
    const posts = catalog.requests.filter((line) => line.startsWith('POST ') && line.endsWith('/register'))
    expect(posts).toHaveLength(2)
    catalog.tables.clear()
    expect(await world.bring()).toMatchObject({ failure: null, catalog: { inLine: true } })
    await expectInLine({ world, catalog })
  },
)

it('a namespace that may not be made is told of before anything is requested; made by somebody else it is used', async () => {
  const { world, catalog } = await cataloged()
  catalog.mayMake = false
  await expect(world.run()).rejects.toMatchObject({
    kind: 'credentials',
    message: expect.stringContaining('May not create namespaces'),
  })
  expect(world.service.received).toEqual([])
  catalog.namespaces.add('leaks')
  expect(await world.run()).toMatchObject({ error: null })
  await expectInLine({ world, catalog })
})

it('a refused token is refused before anything is requested; it is in no error and in no file', async () => {
  const { world, catalog } = await cataloged()
  world.env.CATALOG_TOKEN = 'a-wrong-token-of-the-catalog'
  const error = await refusal(world.run())
  expect(error.kind).toBe('credentials')
  expect(error.message).not.toContain('wrong-token')
  expect(world.service.received).toEqual([])
  world.env.CATALOG_TOKEN = TOKEN
  await world.run()
  catalog.tokens = new Set()
  expect((await refusal(world.run({ redo: ['*'] }))).kind).toBe('credentials')
  const names = await readdir(world.folder, { recursive: true, withFileTypes: true })
  for (const each of names.filter((name) => name.isFile())) {
    const bytes = await readFile(join(each.parentPath, each.name), 'latin1')
    expect(bytes.includes('token-of-the-catalog'), each.name).toBe(false)
  }
})

const CLIENT = { id: 'client-of-ours', secret: 'secret-of-the-client', scope: 'PRINCIPAL_ROLE:ALL' }

async function withOAuth(given: object = { scope: CLIENT.scope }): Promise<Cataloged> {
  const { world, catalog } = await cataloged()
  catalog.client = CLIENT
  const { token_env: _, ...ours } = OURS
  const oauth2 = {
    token_url: `${catalog.url}/v1/oauth/tokens`,
    client_id_env: 'CATALOG_ID',
    client_secret_env: 'CATALOG_SECRET',
    ...given,
  }
  world.load = { ...world.load, catalog: { ...ours, uri: catalog.url, oauth2 } }
  world.env = { SPILLWAY_TOKEN: 'token', CATALOG_ID: CLIENT.id, CATALOG_SECRET: CLIENT.secret }
  return { world, catalog }
}

it('client credentials get a token; one that ends at any request is renewed once', async () => {
  for (let at = 1; ; at += STEP) {
    const { world, catalog } = await withOAuth()
    const turn = Math.floor(at / STEP)
    catalog.expiresIn = [3600, '3599', 0, null][turn % 4]!
    // Some servers tell of it in another way.
    const status = [null, 501, 419][turn % 3]!
    catalog.onRequest = (_, index) => {
      if (index !== at) return null
      catalog.tokens = new Set()
      return status
    }
    expect(await world.run()).toMatchObject({ status: 'complete', error: null })
    await expectInLine({ world, catalog })
    const exchanges = catalog.requests.filter((line) => line.includes('/oauth/tokens')).length
    const isOver = catalog.requests.length <= at
    // The last request is no longer followed by one that needs a token.
    expect(exchanges).toBe(isOver ? 1 : 2)
    if (isOver) break
  }
})

it('where no token is to be had, it is asked for at the beginning and at the end, and told of once', async () => {
  const { world, catalog } = await withOAuth()
  catalog.onRequest = (line) => (line.includes('/oauth/tokens') ? 503 : null)
  const told: string[] = []
  const onLog = (_level: string, message: string) => void told.push(message)
  expect(await world.run({ onLog })).toMatchObject({
    status: 'failed',
    rows: 5,
    error: { kind: 'transient' },
  })
  expect(told.filter((message) => message.includes('catalog'))).toEqual([])
  // Each time as often as any request is repeated.
  expect(catalog.requests.every((line) => line.includes('/oauth/tokens'))).toBe(true)
  expect(catalog.requests).toHaveLength(2 * 5)
})

it('client credentials that are refused are, without the secret in the message', async () => {
  const { world, catalog } = await withOAuth({})
  const { kind, message } = await refusal(world.run())
  expect([kind, message]).toEqual(['credentials', expect.stringContaining('invalid_client')])
  expect(message).not.toContain(CLIENT.secret)
  expect(catalog.requests.filter((line) => line.includes('/oauth/tokens'))).toHaveLength(1)
  expect(world.service.received).toEqual([])
})

it('a run that starts over takes the table out of the catalog, without its files, and registers the new one', async () => {
  const { world, catalog } = await cataloged()
  await world.run()
  const former = catalog.table()!.uuid
  expect(await world.run({ fresh: true })).toMatchObject({ status: 'complete', error: null })
  expect(catalog.requests).toContain('DELETE /api/v1/w1/namespaces/leaks/tables/acme?purgeRequested=false')
  expect(catalog.table()!.uuid).not.toBe(former)
  await expectInLine({ world, catalog })
  catalog.onRequest = () => 503
  await expect(world.run({ fresh: true })).rejects.toMatchObject({ kind: 'transient' })
  expect((await metadataOf(world.out))['table-uuid']).toBe(catalog.table()!.uuid)
})
