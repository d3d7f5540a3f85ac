import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import { afterAll, beforeAll, vi } from 'vitest'
import { azureDriver } from '../../src/azure/index.ts'
import { bucketStore } from '../../src/bucket/index.ts'
import { ACCOUNT, type Azurite, KEY, startAzurite } from '../azure/azurite.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { storeConformance } from './conformance.ts'

let azurite: Azurite
let worlds = 0

beforeAll(async () => {
  azurite = await startAzurite()
  vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', undefined)
  vi.stubEnv('AZURE_STORAGE_ACCOUNT', ACCOUNT)
  vi.stubEnv('AZURE_STORAGE_KEY', KEY)
  await container().create()
}, 60_000)
afterAll(async () => {
  await azurite?.close()
  vi.unstubAllEnvs()
})

const container = () =>
  new BlobServiceClient(azurite.endpoint, new StorageSharedKeyCredential(ACCOUNT, KEY)).getContainerClient(
    'exports',
  )

storeConformance(
  'a store in a container of Azure Blob storage',
  () => {
    const prefix = `team/data-set-${worlds++}`
    const { endpoint } = azurite
    const location = { kind: 'azure', container: 'exports', prefix, endpoint } as const
    return {
      open: () => bucketStore(azureDriver(location)),
      async names() {
        const names: string[] = []
        for await (const { name } of container().listBlobsFlat({ prefix: `${prefix}/` })) names.push(name)
        return names
      },
    }
  },
  { sequences: cases(25, 2), isBrief: !THOROUGH },
)
