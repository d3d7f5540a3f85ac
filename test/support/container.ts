import { ACCOUNT, KEY, startAzurite } from '../azure/azurite.ts'
import { BUCKET, type Bucket, writeInto } from './bucket.ts'

export async function startContainer(): Promise<Bucket> {
  const azurite = await startAzurite()
  const container = azurite.client.getContainerClient(BUCKET)
  await container.create()
  const names = async (prefix = ''): Promise<string[]> => {
    const found: string[] = []
    for await (const { name } of container.listBlobsFlat({ prefix })) found.push(name)
    return found.sort()
  }
  return {
    address: `az://${BUCKET}`,
    env: {
      AZURE_STORAGE_CONNECTION_STRING: `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${azurite.endpoint}`,
    },
    names,
    async mirror(prefix, folder) {
      for (const name of await names(`${prefix}/`)) {
        const bytes = await container.getBlobClient(name).downloadToBuffer()
        await writeInto(folder, name.slice(prefix.length + 1), bytes)
      }
    },
    close: () => azurite.close(),
  }
}
