import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, vi } from 'vitest'
import { azureDriver } from '../../src/azure/index.ts'
import { bucketStore } from '../../src/bucket/index.ts'
import { ACCOUNT, type Azurite, KEY, startAzurite } from '../azure/azurite.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { type BucketWorld, bucketsOfOthers } from './conformance/buckets-of-others.ts'
import { storeConformance } from './conformance.ts'

let azurite: Azurite
let worlds = 0

beforeAll(async () => {
  azurite = await startAzurite()
  vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', undefined)
  vi.stubEnv('AZURE_STORAGE_ACCOUNT', ACCOUNT)
  vi.stubEnv('AZURE_STORAGE_KEY', KEY)
  await container().create()
})
afterAll(async () => {
  await azurite?.close()
  vi.unstubAllEnvs()
})

const container = () => azurite.client.getContainerClient('exports')

const makeWorld = (): BucketWorld => {
  const prefix = `team/data-set-${worlds++}`
  const { endpoint } = azurite
  const openAt = (address: string) =>
    bucketStore(azureDriver({ kind: 'azure', container: 'exports', prefix, endpoint: address }))
  return {
    endpoint,
    open: () => openAt(endpoint),
    openAt,
    async markFolder(folder: string) {
      const path = [prefix, folder].filter((part) => part !== '').join('/')
      // As tools for flat accounts, and as hierarchical namespaces show their folders.
      await container().getBlockBlobClient(`${path}/`).upload('', 0)
      await container()
        .getBlockBlobClient(path)
        .upload('', 0, { metadata: { hdi_isfolder: 'true' } })
    },
    refuseTime(response: ServerResponse) {
      const date = new Date(Date.now() + 3 * 3_600_000).toUTCString()
      response.writeHead(403, { date, 'x-ms-error-code': 'AuthenticationFailed' }).end()
    },
    async names() {
      const names: string[] = []
      for await (const { name } of container().listBlobsFlat({ prefix: `${prefix}/` })) names.push(name)
      return names
    },
  }
}

const NAME = 'a store in a container of Azure Blob storage'
storeConformance(NAME, makeWorld, { sequences: cases(25, 2), isBrief: !THOROUGH })
describe.skipIf(!THOROUGH)(NAME, () => bucketsOfOthers(makeWorld))
