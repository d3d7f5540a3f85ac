import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { S3Error } from './errors.ts'

export type Algorithm = 'CRC32' | 'SHA1' | 'SHA256'

export type Checksum = {
  readonly algorithm: Algorithm
  /** Base64; with `-<parts>` at the end if it is computed from the checksums of parts. */
  readonly value: string
}

type Headers = ReadonlyMap<string, string>

/**
 * Checks a body against `content-md5` and the checksum in its headers.
 * @returns that checksum, or null when there is none
 * @throws S3Error `BadDigest` when one is wrong
 */
export function verifyChecksums(headers: Headers, body: Uint8Array): Checksum | null {
  verifyMd5(headers.get('content-md5'), body)
  const stated = [...headers].filter(([name]) => /^x-amz-checksum-(?:crc|sha)/.test(name))
  if (stated.length > 1) throw new S3Error('InvalidRequest', 'Expecting a single x-amz-checksum- header')
  const [first] = stated
  if (first === undefined) return null
  const [name, value] = first
  const algorithm = algorithmOf(name.slice('x-amz-checksum-'.length))
  if (checksumOf(algorithm, body).value !== value)
    throw new S3Error(
      'BadDigest',
      `The ${algorithm} you specified did not match what was calculated of the body.`,
    )
  return { algorithm, value }
}

/** @throws S3Error `NotImplemented` for those that this double does not know */
export function algorithmOf(name: string): Algorithm {
  const upper = name.toUpperCase()
  if (upper === 'CRC32' || upper === 'SHA1' || upper === 'SHA256') return upper
  throw new S3Error('NotImplemented', `The checksum ${upper} is not implemented.`)
}

export function checksumOf(algorithm: Algorithm, bytes: Uint8Array): Checksum {
  return { algorithm, value: digest(algorithm, bytes).toString('base64') }
}

/** The checksum of an object that was uploaded in parts: that of the checksums of the parts. */
export function compositeChecksum(algorithm: Algorithm, parts: readonly Checksum[]): Checksum {
  const all = Buffer.concat(parts.map(({ value }) => Buffer.from(value, 'base64')))
  return { algorithm, value: `${digest(algorithm, all).toString('base64')}-${parts.length}` }
}

export function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest()
}

function digest(algorithm: Algorithm, bytes: Uint8Array): Buffer {
  if (algorithm !== 'CRC32') return createHash(algorithm).update(bytes).digest()
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes))
  return sum
}

function verifyMd5(stated: string | undefined, body: Uint8Array): void {
  if (stated === undefined) return
  if (Buffer.from(stated, 'base64').length !== 16) throw new S3Error('InvalidDigest', 'No valid Content-MD5.')
  if (md5(body).toString('base64') !== stated) throw new S3Error('BadDigest')
}
