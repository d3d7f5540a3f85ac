import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Where a file of the package lies. Two folders up, from the sources and from the built files alike. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export const version = (
  JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { readonly version: string }
).version
