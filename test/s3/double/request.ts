import type { IncomingMessage } from 'node:http'
import { S3Error } from './errors.ts'

export type S3Request = {
  readonly method: string
  readonly path: string
  /** Decoded, in the order given; parameters without a value have an empty one. */
  readonly query: readonly (readonly [name: string, value: string])[]
  /** Raw values, by name in lower case; repeated ones joined by a comma. */
  readonly headers: ReadonlyMap<string, string>
  /** Path-style: `/bucket/key`. */
  readonly bucket: string | null
  readonly key: string | null
}

/** @throws S3Error when the address is invalid */
export function parseRequest(message: IncomingMessage): S3Request {
  const target = message.url ?? '/'
  const [rawPath, rawQuery] = splitOnce(target, '?')
  const path = decoded(rawPath)
  const [bucket, key] = splitOnce(path.slice(1), '/')
  const headers = new Map<string, string>()
  for (let index = 0; index < message.rawHeaders.length; index += 2) {
    const name = message.rawHeaders[index]!.toLowerCase()
    const value = message.rawHeaders[index + 1]!
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before},${value}`)
  }
  return {
    method: message.method ?? '',
    path,
    query: parseQuery(rawQuery),
    headers,
    bucket: bucket === '' ? null : bucket,
    key: key === '' ? null : key,
  }
}

/** @returns null when the parameter is missing */
export function parameter({ query }: S3Request, name: string): string | null {
  return query.find(([each]) => each === name)?.[1] ?? null
}

/** @returns an integer, or the fallback when the parameter is missing. @throws S3Error when it is invalid */
export function numberParameter(request: S3Request, name: string, fallback: number): number {
  const value = parameter(request, name)
  if (value === null) return fallback
  if (!/^\d{1,9}$/.test(value)) throw new S3Error('InvalidArgument')
  return Number(value)
}

function parseQuery(query: string): [string, string][] {
  return query
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const [name, value] = splitOnce(part.replaceAll('+', ' '), '=')
      return [decoded(name), decoded(value)]
    })
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new S3Error('InvalidURI')
  }
}
