import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where a file of the package lies. Two folders up, from the sources and from the built files alike. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export const version = (
  JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { readonly version: string }
).version

/** 16 hex digits that change with the encoders' source alone. No commit, clock or machine: the bytes stay the same. */
export function encoderBuild(): string {
  // The sources are no part of the package: what they came to is written down when it is built.
  return import.meta.url.endsWith('.ts')
    ? encoderDigest()
    : readFileSync(new URL('encoder-build.txt', import.meta.url), 'latin1')
}

/** The first digits of a SHA-256 over the names and the bytes of the encoders' sources, in order of their names. */
export function encoderDigest(): string {
  const folder = packageFile('src/load/encode')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const hash = createHash('sha256')
  for (const name of names.sort()) hash.update(`${name}\0`).update(readFileSync(join(folder, name)))
  return hash.digest('hex').slice(0, 16)
}
