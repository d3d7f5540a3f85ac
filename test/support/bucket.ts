import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { StoredObject } from '../s3/double/objects.ts'
import { type S3Double, type S3DoubleOptions, startS3Double } from '../s3/double/server.ts'
import { CREDENTIALS } from '../s3/servers.ts'

export const BUCKET = 'leaks'

/** A store with one bucket, and the environment through which AWS tools find it. */
export async function startBucket(options: S3DoubleOptions = {}) {
  const double = await startS3Double({ ...options, buckets: [BUCKET] })
  const env: Readonly<Record<string, string>> = {
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    AWS_REGION: double.region,
    AWS_ENDPOINT_URL_S3: double.endpoint,
  }
  return { double, env }
}

/** The same for a test. Commands that this process carries out find the store. */
export async function bucketHere(options: S3DoubleOptions = {}) {
  const started = await startBucket(options)
  for (const [name, value] of Object.entries(started.env)) vi.stubEnv(name, value)
  onTestFinished(async () => {
    vi.unstubAllEnvs()
    await started.double.close()
  })
  return started
}

export function namesIn(double: S3Double, prefix = ''): string[] {
  return [...double.objects(BUCKET).keys()].filter((name) => name.startsWith(prefix)).sort()
}

/** What tests of the command see of object storage of either kind. */
export type Bucket = {
  /** For `load.path`. */
  readonly address: string
  readonly env: Readonly<Record<string, string>>
  names(prefix?: string): Promise<string[]>
  /** Copies the objects below a prefix into a folder. */
  mirror(prefix: string, folder: string): Promise<void>
  close(): Promise<void>
}

export function bucketOf(double: S3Double, env: Readonly<Record<string, string>>): Bucket {
  return {
    address: `s3://${BUCKET}`,
    env,
    names: async (prefix) => namesIn(double, prefix),
    mirror: (prefix, folder) => mirror(double, prefix, folder),
    close: () => double.close(),
  }
}

export async function writeInto(folder: string, name: string, bytes: Uint8Array): Promise<void> {
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, bytes)
}

export async function mirror(double: S3Double, prefix: string, folder: string): Promise<void> {
  for (const [name, { bytes }] of double.objects(BUCKET)) {
    if (!name.startsWith(`${prefix}/`)) continue
    await writeInto(folder, name.slice(prefix.length + 1), bytes)
  }
}

/** Changes the contents of objects, as another client of the store could. */
export function editObjects(double: S3Double, names: RegExp, edit: (text: string) => string): void {
  for (const [name, { bytes }] of [...double.objects(BUCKET)])
    if (names.test(name)) putObject(double, name, Buffer.from(edit(bytes.toString())))
}

/** Puts an object, or replaces it, as another client of the store could. */
export function putObject(double: S3Double, key: string, bytes: Buffer): void {
  const objects = double.objects(BUCKET) as Map<string, StoredObject>
  const before = objects.get(key) ?? { key, headers: {}, checksum: null }
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
  objects.set(key, { ...before, bytes, etag, modifiedMs: Date.now() })
}
