import { shown } from './shown.ts'
import { isMapping, type Path, placeAt, type Tree, valueAt } from './tree.ts'

/** Keys whose values are never shown: what somebody puts there by mistake may be a secret. */
const UNSHOWN = new Set([
  'base_url',
  'token_env',
  'api_key_env',
  'token_url',
  'token_test_url',
  'organization',
  'search_path',
  'report_path',
  'mask_key_env',
  'secret_env',
  'email',
  'keyword',
  'queries',
])

const DOMAINS = new Set(['domains', 'fqdn'])

/** What stands at a path, in words that may be shown; null when nothing does. */
export function describe(tree: Tree, path: Path): string | null {
  const value = valueAt(tree, path)
  if (value === undefined) return null
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (isMapping(value)) return 'a mapping'
  const { place } = placeAt(tree, path)
  if (place?.from === 'file' && place.variables.length > 0) {
    return `what ${place.variables.map((name) => `\${${name}}`).join(' and ')} expands to (not shown)`
  }
  const key = path.findLast((part) => typeof part === 'string')
  // Text in the place of a whole section may be anything, a pasted token for example.
  const isSection = key === undefined || (path.length === 1 && key !== 'name' && key !== 'extends')
  if (isSection || UNSHOWN.has(key)) return `a ${typeof value} (not shown)`
  // An address or a URL in the place of a domain may name a person or hold a password.
  if (typeof value === 'string' && DOMAINS.has(key) && /@|\/\//.test(value)) return 'a text (not shown)'
  return typeof value === 'string' ? `"${shown(value)}"` : String(value)
}
