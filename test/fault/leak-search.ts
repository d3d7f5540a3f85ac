import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { sql } from '../support/read-shards.ts'

/** A planted secret, and the name under which it is reported. */
export type Canary = { readonly name: string; readonly value: string }

export type Haystack = { readonly name: string; readonly bytes: Buffer }

/**
 * Every occurrence of a canary, in any form that reveals a secret: as it is, in another encoding, or as a digest
 * without a key, which a dictionary attack can reverse.
 */
export function findLeaks(haystacks: readonly Haystack[], canaries: readonly Canary[]): readonly string[] {
  const needles = canaries.flatMap(({ name, value }) =>
    [...formsOf(value)].map(([form, bytes]) => ({ found: `${name} (${form})`, bytes })),
  )
  return haystacks.flatMap((haystack) =>
    needles
      .filter(({ bytes }) => haystack.bytes.includes(bytes))
      .map(({ found }) => `${found} in ${haystack.name}`),
  )
}

const DIGESTS = ['md5', 'sha1', 'sha256', 'sha512']

function formsOf(value: string): ReadonlyMap<string, Buffer> {
  const bytes = Buffer.from(value)
  const forms = new Map<string, Buffer>()
  const add = (name: string, form: string | Buffer): void => {
    forms.set(name, typeof form === 'string' ? Buffer.from(form) : form)
  }
  add('plain', bytes)
  add('JSON', JSON.stringify(value).slice(1, -1))
  add('JSON in JSON', JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1))
  add('percent', encodeURIComponent(value))
  add('form', encodeURIComponent(value).replaceAll('%20', '+'))
  add('CSV', value.replaceAll('"', '""'))
  add('hex', bytes.toString('hex'))
  add('HEX', bytes.toString('hex').toUpperCase())
  add('UTF-16LE', Buffer.from(value, 'utf16le'))
  add('UTF-16BE', Buffer.from(value, 'utf16le').swap16())
  // Within a longer string the Base64 of the canary depends on the offset modulo 3 at which it begins.
  for (const shift of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const sure = shifted.slice(shift === 0 ? 0 : 4, -2)
    add(`base64 +${shift}`, sure)
    add(`base64url +${shift}`, sure.replaceAll('+', '-').replaceAll('/', '_'))
  }
  for (const algorithm of DIGESTS) {
    const digest = createHash(algorithm).update(bytes).digest()
    add(`${algorithm} raw`, digest)
    add(`${algorithm} hex`, digest.toString('hex'))
    add(`${algorithm} HEX`, digest.toString('hex').toUpperCase())
    add(`${algorithm} base64`, digest.toString('base64').replace(/=+$/, ''))
    add(`${algorithm} base64url`, digest.toString('base64url'))
  }
  return forms
}

/** Every file below a folder as it is, and decompressed: all of a gzip file, the column values of a Parquet file. */
export async function haystacksOf(folder: string): Promise<readonly Haystack[]> {
  const found: Haystack[] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path)
    found.push({ name: `the name ${name}`, bytes: Buffer.from(name) })
    if (!entry.isFile()) continue
    const bytes = await readFile(path)
    found.push({ name, bytes })
    if (name.endsWith('.gz')) found.push({ name: `${name}, decompressed`, bytes: gunzipSync(bytes) })
    if (name.endsWith('.parquet')) found.push({ name: `${name}, read`, bytes: await parquetText(path) })
  }
  return found
}

/** Everything that a reader can see: values, statistics, key-value metadata. */
async function parquetText(path: string): Promise<Buffer> {
  const texts: string[] = []
  for (const from of ['read_parquet', 'parquet_metadata', 'parquet_kv_metadata'])
    for (const row of await sql(`SELECT * FROM ${from}('${path}')`)) texts.push(...textsIn(row))
  return Buffer.from(texts.join('\n'))
}

function textsIn(value: unknown): string[] {
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()]
  return value instanceof Object ? Object.values(value).flatMap(textsIn) : [String(value)]
}
