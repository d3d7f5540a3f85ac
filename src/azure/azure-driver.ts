import { setTimeout as sleep } from 'node:timers/promises'
import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob'
import { Conflict, contentType, type Driver, inParts, STORE_ATTEMPTS, type Write } from '../bucket/index.ts'
import { azureError, isConflict, isMissing, retryAfterMs, statusOf } from './azure-error.ts'
import { type AzureLocation, openContainer } from './client.ts'

/** The metadata of the write that made an object. The service takes no hyphens here. */
const MARK = 'spillwaywrite'
const BODY_ATTEMPTS = 4
const COPY_POLL_MS = 200

export function azureDriver(location: AzureLocation): Driver {
  const { prefix } = location
  const root = prefix === '' ? '' : `${prefix}/`
  let opened: Promise<ContainerClient> | null = null
  const container = (): Promise<ContainerClient> => {
    opened ??= openContainer(location)
    return opened
  }
  const blob = async (name: string): Promise<BlockBlobClient> =>
    (await container()).getBlockBlobClient(root + name)

  return {
    address: `az://${location.container}/${root}`.replace(/\/$/, ''),
    error: azureError,

    async head(name) {
      try {
        const found = await unlessBusy(async () => (await blob(name)).getProperties())
        if (isFolder(found)) return null
        const { contentLength: size = 0, etag = '', metadata } = found
        return { size, etag, mark: metadata?.[MARK] ?? null }
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    },

    async get(name, range, etag) {
      const [start, end] = range ?? [0, Number.POSITIVE_INFINITY]
      try {
        const count = end === Number.POSITIVE_INFINITY ? undefined : end - start
        const conditions = etag === null ? {} : { ifMatch: etag }
        const response = await unlessBusy(async () =>
          (await blob(name)).download(start, count, { conditions, maxRetryRequests: BODY_ATTEMPTS }),
        )
        const chunks: Uint8Array[] = []
        for await (const chunk of response.readableStreamBody ?? []) chunks.push(chunk as Buffer)
        if (isFolder(response)) return null
        return { bytes: new Uint8Array(Buffer.concat(chunks)), etag: response.etag ?? '' }
      } catch (error) {
        if (isMissing(error)) return null
        // The object ends before the range.
        if (statusOf(error) === 416) return { bytes: new Uint8Array(), etag: etag ?? '' }
        throw isConflict(error) ? new Conflict(name) : error
      }
    },

    async put(name, body, write) {
      const client = await blob(name)
      const { etag = '' } = await conditionally(name, () =>
        client.upload(body, body.byteLength, described(name, write)),
      )
      return etag
    },

    async upload(name, chunks, write) {
      const client = await blob(name)
      // All ids of an object have one length.
      const ids = await inParts(chunks, async (number, body) => {
        const id = Buffer.from(`${write.mark}${String(number).padStart(6, '0')}`).toString('base64')
        await conditionally(name, () => client.stageBlock(id, body, body.byteLength))
        return id
      })
      const { etag = '' } = await conditionally(name, () =>
        client.commitBlockList([...ids], described(name, write)),
      )
      return etag
    },

    async copy(from, to) {
      const [source, target] = [await blob(from), await blob(to)]
      const options = { intervalInMs: COPY_POLL_MS }
      const copying = await unlessBusy(() => target.beginCopyFromURL(source.url, options))
      await copying.pollUntilDone()
    },

    async remove(name) {
      await unlessBusy(async () => (await blob(name)).deleteIfExists({ deleteSnapshots: 'include' }))
    },

    async *list(start, isDeep) {
      const options = { prefix: root + start, includeMetadata: true }
      const client = await container()
      const found = isDeep ? client.listBlobsFlat(options) : client.listBlobsByHierarchy('/', options)
      let page: { continuationToken?: string } = {}
      do {
        const { value } = await unlessBusy(() => found.byPage(page).next())
        const { blobItems = [], blobPrefixes = [] } = value?.segment ?? {}
        for (const { name } of blobPrefixes) yield { name: name.slice(root.length), size: 0 }
        for (const item of blobItems) {
          if (isFolder(item)) continue
          yield { name: item.name.slice(root.length), size: item.properties.contentLength ?? 0 }
        }
        page = value?.continuationToken ? { continuationToken: value.continuationToken } : {}
      } while (page.continuationToken !== undefined)
    },

    // Parts that are never committed go after a week.
    async *uploads() {},
  }
}

/** Accounts with hierarchical namespaces have their folders among the objects. */
function isFolder({ metadata }: { readonly metadata?: Readonly<Record<string, string>> }): boolean {
  return metadata?.hdi_isfolder === 'true'
}

function described(name: string, { mark, condition }: Write) {
  return {
    conditions: condition === 'absent' ? { ifNoneMatch: '*' } : { ifMatch: condition.etag },
    metadata: { [MARK]: mark },
    blobHTTPHeaders: { blobContentType: contentType(name) },
  }
}

async function conditionally<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await unlessBusy(write)
  } catch (error) {
    throw isConflict(error) ? new Conflict(name) : error
  }
}

/** Repeats a request that the service has put off: the SDK does so after 500 and 503, but not after 429. */
async function unlessBusy<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request()
    } catch (error) {
      if (attempt === STORE_ATTEMPTS || statusOf(error) !== 429) throw error
      await sleep(retryAfterMs(error) ?? 250 * 2 ** attempt)
    }
  }
}
