import {
  AccountSASPermissions,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { azureDriver } from '../../src/azure/index.ts'
import { bucketStore } from '../../src/bucket/index.ts'
import { refusal } from '../disk/errors.ts'
import { gatewayTo } from '../store/conformance/gateway.ts'
import { ACCOUNT, type Azurite, KEY, startAzurite } from './azurite.ts'

let azurite: Azurite

beforeAll(async () => {
  azurite = await startAzurite()
  await azurite.client.getContainerClient('exports').create()
})
afterAll(() => azurite?.close())

const VARIABLES = ['CONNECTION_STRING', 'ACCOUNT', 'KEY', 'SAS_TOKEN']

function setVariables(given: Record<string, string>): void {
  for (const name of VARIABLES) vi.stubEnv(`AZURE_STORAGE_${name}`, given[name])
}

beforeEach(() => setVariables({ ACCOUNT, KEY }))
afterEach(() => vi.unstubAllEnvs())

function list(changes: { container?: string; endpoint?: string | null } = {}): Promise<readonly string[]> {
  const { container = 'exports', endpoint = azurite.endpoint } = changes
  const location = { kind: 'azure', container, prefix: 'set', endpoint } as const
  return bucketStore(azureDriver(location)).list('')
}

/** @param permissions their letters */
function sasToken(permissions: string): string {
  return generateAccountSASQueryParameters(
    {
      expiresOn: new Date(Date.now() + 3_600_000),
      permissions: AccountSASPermissions.parse(permissions),
      resourceTypes: 'sco',
      services: 'b',
    },
    new StorageSharedKeyCredential(ACCOUNT, KEY),
  ).toString()
}

const SECRET = Buffer.from('wrong-but-secret-0123456789').toString('base64')

const saidBy = (error: Error): string =>
  [error, error.cause as Error].map((each) => `${each?.message}${each?.stack}${JSON.stringify(each)}`).join()

describe('credentials', () => {
  it('come from a connection string, or from account and key', async () => {
    expect(await list()).toEqual([])
    setVariables({
      CONNECTION_STRING: `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${azurite.endpoint};`,
    })
    expect(await list({ endpoint: null })).toEqual([])
  })

  it.each([
    [
      'a key that is wrong',
      { ACCOUNT, KEY: SECRET },
      { kind: 'credentials', message: expect.stringContaining('AZURE_STORAGE_KEY') },
    ],
    [
      'a SAS token that is wrong',
      {
        ACCOUNT,
        SAS_TOKEN: `?sv=2024-11-04&ss=b&srt=sco&sp=rl&se=2030-01-01T00:00:00Z&sig=${encodeURIComponent(SECRET)}`,
      },
      { kind: 'credentials' },
    ],
    [
      'a SAS token that does not permit enough',
      { ACCOUNT, SAS_TOKEN: sasToken('w') },
      { kind: 'storage', what: 'The store does not allow it' },
    ],
    [
      'no connection string',
      { CONNECTION_STRING: `AccountKey=${SECRET}` },
      { kind: 'config', where: 'AZURE_STORAGE_CONNECTION_STRING' },
    ],
  ])('%s is refused, without its value', async (_, variables, expected) => {
    setVariables(variables)
    const error = await refusal(list())
    expect(error).toMatchObject(expected)
    expect(saidBy(error)).not.toContain(SECRET)
    expect(saidBy(error)).not.toMatch(/SharedKey|wrong-but|sig=/)
  })

  it('of a SAS token are enough', async () => {
    setVariables({ SAS_TOKEN: `?${sasToken('rlacwd')}\n` })
    expect(await list()).toEqual([])
    const signed = `BlobEndpoint=${azurite.endpoint};SharedAccessSignature=${sasToken('rl')}`
    setVariables({ CONNECTION_STRING: signed })
    expect(await list({ endpoint: null })).toEqual([])
  })

  it.each<[string, Record<string, string>, { endpoint?: null }]>([
    ['any', {}, { endpoint: null }],
    ['an account', { KEY }, {}],
    ['a key or token for an address without TLS', { ACCOUNT }, {}],
  ])('that lack %s are reported before anything is sent', async (_, variables, given) => {
    setVariables(variables)
    expect(await refusal(list(given))).toMatchObject({ kind: 'config', where: 'AZURE_STORAGE_ACCOUNT' })
  })
})

describe('an address', () => {
  it('without the container is reported', async () => {
    const error = await refusal(list({ container: 'nobody' }))
    expect(error).toMatchObject({ kind: 'config', what: 'There is no such container' })
  })

  it('where nobody listens is reported', async () => {
    const error = await refusal(list({ endpoint: `http://127.0.0.1:9/${ACCOUNT}` }))
    expect(error.kind).toBe('storage')
    expect(error.message).toContain('ECONNREFUSED')
  })

  it('by plain http on another machine is refused before anything is sent', async () => {
    const error = await refusal(list({ endpoint: `http://store.invalid/${ACCOUNT}` }))
    expect(error).toMatchObject({ kind: 'config', where: 'load.azure.endpoint' })
  })
})

it.each([429, 503])('status %i is waited out', async (status) => {
  let refused = 0
  const { endpoint } = await gatewayTo(azurite.endpoint, {
    refuse: () =>
      refused++ % 3 < 2 ? (response) => void response.writeHead(status, { 'retry-after': '0' }).end() : null,
  })
  const driver = azureDriver({ kind: 'azure', container: 'exports', prefix: `busy-${status}`, endpoint })
  const write = { mark: 'a', condition: 'absent' } as const
  const etag = await driver.put('a/b', Buffer.from('text'), write)
  await driver.upload('a/c', [Buffer.from('more')], write)
  expect(await driver.head('a/b')).toEqual({ size: 4, etag, mark: 'a' })
  expect(Buffer.from((await driver.get('a/b', null, null))!.bytes).toString()).toBe('text')
  const listed = async (start: string, isDeep: boolean) => {
    const names: string[] = []
    for await (const { name } of driver.list(start, isDeep)) names.push(name)
    return names
  }
  expect([await listed('', false), await listed('', true)]).toEqual([['a/'], ['a/b', 'a/c']])
  await driver.remove('a/b')
  expect(await listed('a/', true)).toEqual(['a/c'])
})
