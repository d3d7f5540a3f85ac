import { randomBytes } from 'node:crypto'

/** Metadata of an object. */
export type Head = {
  readonly size: number
  readonly etag: string
  /** The epoch of the file's segments; null: it has none. See {@link StoredFile}. */
  readonly epoch: string | null
}

/** The condition of a write: the object still has this ETag, or does not exist. */
export type Condition = { readonly etag: string } | 'absent'

export type PutOptions = { readonly epoch?: string | null; readonly condition?: Condition | null }

/** Thrown when the condition of a write does not hold. */
export class Conflict extends Error {}

// Metadata of every object: the epoch of its file's segments, and the write that made it.
export const EPOCH = 'spillway-epoch'
export const MARK = 'spillway-write'

export function metadata(mark: string, epoch: string | null): Record<string, string> {
  return { [MARK]: mark, ...(epoch === null ? {} : { [EPOCH]: epoch }) }
}

export function newMark(): string {
  return randomBytes(8).toString('hex')
}

export function conditionOf(condition: Condition | null): { IfMatch?: string; IfNoneMatch?: string } {
  if (condition === null) return {}
  return condition === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }
}

const CONTENT_TYPES: Record<string, string> = {
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  html: 'text/html; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  gz: 'application/gzip',
  parquet: 'application/vnd.apache.parquet',
}

export function contentType(name: string): string {
  return CONTENT_TYPES[/\.([a-z]+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream'
}
