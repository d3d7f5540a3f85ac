import { createHash, getFips } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { S3Client } from '@aws-sdk/client-s3'
import {
  type Condition,
  Conflict,
  contentType,
  type Driver,
  inParts,
  unfit,
  type Write,
} from '../bucket/index.ts'
import type { BucketLocation, Client, Sdk } from './client.ts'
import { isBrokenBody, isConflict, isMissing, isUnknownThere, s3Error, statusOf } from './s3-error.ts'

const BODY_ATTEMPTS = 4
// Another write of the same object was under way each time: three seconds in all.
const RACE_ATTEMPTS = 6
const RACE_MS = 100
/** The metadata of the write that made an object. */
const MARK = 'spillway-write'

export function s3Driver(location: BucketLocation): Driver {
  const { bucket, prefix } = location
  const root = prefix === '' ? '' : `${prefix}/`
  const address = `s3://${bucket}/${root}`.replace(/\/$/, '')
  let client: Promise<Client> | null = null
  const opened = (): Promise<Client> => {
    // With the SDK, and what connects: other stores wait for neither.
    client ??= import('./client.ts').then(({ openClient }) => openClient(location))
    return client
  }
  const send = async <T>(work: (s3: S3Client, sdk: Sdk) => Promise<T>): Promise<T> => {
    const { s3, sdk } = await opened()
    return work(s3, sdk)
  }
  const object = (name: string) => ({ Bucket: bucket, Key: root + name })
  const described = (name: string, { mark }: Write) => ({
    ...object(name),
    ContentType: contentType(name),
    Metadata: { [MARK]: mark },
  })

  const driver: Driver = {
    address,
    error: s3Error,

    head: (name) =>
      send(async (s3, sdk) => {
        const found = await s3.send(new sdk.HeadObjectCommand(object(name)))
        const { ContentLength: size = 0, ETag: etag = '', Metadata } = found
        return { size, etag, mark: Metadata?.[MARK] ?? null }
      }).catch(nullIfMissing),

    async get(name, range, etag) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await send(async (s3, sdk) => {
            const response = await s3.send(
              new sdk.GetObjectCommand({
                ...object(name),
                Range: range === null ? undefined : httpRange(range),
                IfMatch: etag ?? undefined,
              }),
            )
            const bytes = new Uint8Array((await response.Body?.transformToByteArray()) ?? [])
            return { bytes, etag: response.ETag ?? '' }
          })
        } catch (error) {
          if (isMissing(error)) return null
          if (isConflict(error)) throw new Conflict(name)
          // The object ends before the range.
          if (statusOf(error) === 416) return { bytes: new Uint8Array(), etag: etag ?? '' }
          // The SDK repeats requests, but not after an error in the response body.
          if (attempt === BODY_ATTEMPTS || !isBrokenBody(error)) throw error
        }
      }
    },

    async put(name, body, write) {
      try {
        return await conditionally(name, () =>
          send(async (s3, sdk) => {
            const content = { Body: body, ...md5Of(body) }
            const input = { ...described(name, write), ...content, ...conditionOf(write.condition) }
            return (await s3.send(new sdk.PutObjectCommand(input))).ETag ?? ''
          }),
        )
      } catch (error) {
        throw isUnknownThere(error) ? unfit(address, `does not know ${headerOf(write.condition)}`) : error
      }
    },

    async upload(name, chunks, write) {
      const UploadId = await send(async (s3, sdk) => {
        const begun = await s3.send(new sdk.CreateMultipartUploadCommand(described(name, write)))
        if (begun.UploadId === undefined) throw new Error('an upload without id')
        return begun.UploadId
      })
      const upload = { ...object(name), UploadId }
      try {
        const Parts = await inParts(chunks, (PartNumber, Body) =>
          send(async (s3, sdk) => {
            const part = { ...upload, PartNumber, Body, ...md5Of(Body) }
            const { ETag = '' } = await s3.send(new sdk.UploadPartCommand(part))
            return { PartNumber, ETag }
          }),
        )
        const input = { ...upload, MultipartUpload: { Parts: [...Parts] }, ...conditionOf(write.condition) }
        return await conditionally(name, () =>
          send(async (s3, sdk) => (await s3.send(new sdk.CompleteMultipartUploadCommand(input))).ETag ?? ''),
        )
      } catch (error) {
        await abort(name, UploadId).catch(() => {})
        throw error
      }
    },

    copy: (from, to) =>
      send(async (s3, sdk) => {
        const CopySource = [bucket, ...(root + from).split('/')].map(encodeURIComponent).join('/')
        await s3.send(new sdk.CopyObjectCommand({ ...object(to), CopySource }))
      }),

    remove: (name) =>
      send(async (s3, sdk) => void (await s3.send(new sdk.DeleteObjectCommand(object(name))))),

    async *list(start, isDeep) {
      const { s3, sdk } = await opened()
      const input = { Bucket: bucket, Prefix: root + start, Delimiter: isDeep ? undefined : '/' }
      for await (const page of sdk.paginateListObjectsV2({ client: s3, stopOnSameToken: true }, input)) {
        for (const { Prefix = '' } of page.CommonPrefixes ?? [])
          yield { name: Prefix.slice(root.length), size: 0 }
        for (const { Key = '', Size = 0 } of page.Contents ?? [])
          yield { name: Key.slice(root.length), size: Size }
      }
    },

    async *uploads(start) {
      for (let from: { KeyMarker?: string; UploadIdMarker?: string | undefined } = {}; ; ) {
        const page = await send((s3, sdk) =>
          s3.send(new sdk.ListMultipartUploadsCommand({ Bucket: bucket, Prefix: root + start, ...from })),
        ).catch((error: unknown) => {
          // Lifecycle rules of the bucket may abort what is left.
          if (isUnknownThere(error)) return null
          throw error
        })
        for (const { Key = '', UploadId = '' } of page?.Uploads ?? []) {
          const name = Key.slice(root.length)
          yield { name, abort: () => abort(name, UploadId) }
        }
        if (page?.IsTruncated !== true || page.NextKeyMarker === undefined) return
        const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page
        from = { KeyMarker, UploadIdMarker }
      }
    },
  }

  async function abort(name: string, UploadId: string): Promise<void> {
    await send((s3, sdk) =>
      s3.send(new sdk.AbortMultipartUploadCommand({ ...object(name), UploadId })),
    ).catch(nullIfMissing)
  }

  return driver
}

function httpRange([start, end]: readonly [number, number]): string {
  return `bytes=${start}-${end === Number.POSITIVE_INFINITY ? '' : end - 1}`
}

/** Buckets with a default retention refuse a body without it. With OpenSSL in FIPS mode there is no MD5. */
function md5Of(body: Uint8Array): { readonly ContentMD5?: string } {
  return getFips() === 1 ? {} : { ContentMD5: createHash('md5').update(body).digest('base64') }
}

function headerOf(condition: Condition): string {
  return condition === 'absent' ? 'If-None-Match' : 'If-Match'
}

function conditionOf(condition: Condition): { IfMatch?: string; IfNoneMatch?: string } {
  return condition === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }
}

/** Repeats a conditional write when another write of the same object was under way. */
async function conditionally(name: string, write: () => Promise<string>): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      // AWS answers 404 when the object of an `If-Match` is missing, or an upload was aborted or is complete.
      if (!isConflict(error) && !isMissing(error)) throw error
      if (statusOf(error) !== 409 || attempt === RACE_ATTEMPTS) throw new Conflict(name)
      await sleep(RACE_MS * 2 ** (attempt - 1))
    }
  }
}

function nullIfMissing(error: unknown): null {
  if (isMissing(error)) return null
  throw error
}
