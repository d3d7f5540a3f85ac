import type { Problems } from '../problems/problems.ts'
import {
  define,
  isContainer,
  type Location,
  located,
  locationsIn,
  type Path,
  type Tree,
} from '../problems/tree.ts'
import { type Environment, variable } from '../secrets/secrets.ts'

type Expanded = {
  readonly text: string
  /** Of the variables that it was made from. */
  readonly names: readonly string[]
  /** The text is not usable if there are any. */
  readonly faults: readonly string[]
}

const REFERENCE = /\$\$\{|\$\{([^}]*)(\})?/g
const WHOLE = /^\$\{[^}]*\}$/
const BODY = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
const MALFORMED = 'malformed reference; write ${NAME} or ${NAME:-default}, and $${ for ${ itself'

/** Stands for an address that nothing is sent to. */
export const UNKNOWN_SERVICE = 'https://service.invalid'

/** Expands `${VAR}` and `${VAR:-default}` (if it is unset or empty), once. `$${` becomes `${`. */
export function expand(text: string, env: Environment): Expanded {
  const names = new Set<string>()
  const faults: string[] = []
  const expanded = text.replace(REFERENCE, (_, body: string | undefined, end: string | undefined) => {
    if (body === undefined) return '${'
    const match = BODY.exec(body)
    if (match === null || end === undefined || match[2]?.includes('${')) {
      faults.push(MALFORMED)
      return ''
    }
    const [, name = '', fallback] = match
    names.add(name)
    const value = variable(name, env) || fallback
    if (value !== undefined) return value
    faults.push(
      `the environment variable ${name} is not set, or empty; set it, or give a default: \${${name}:-default}`,
    )
    return ''
  })
  return { text: expanded, names: [...names], faults: [...new Set(faults)] }
}

/** As YAML reads a plain scalar; undefined: a string. Never a list or mapping: a variable adds no keys to the file. */
export function retyped(text: string): number | boolean | null | undefined {
  if (text === '') return null
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  if (/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) return Number(text)
  return undefined
}

/** Expands every string of the file, but no value of a flag. @param sendsNothing variables of `service` may be unset */
export function expandTree(tree: Tree, env: Environment, problems: Problems, sendsNothing: boolean): Tree {
  const visit = (value: unknown, path: Path): unknown => {
    if (!isContainer(value)) return value
    const copy = Array.isArray(value) ? [] : {}
    const locations = new Map(locationsIn(value))
    for (const [name, inner] of Object.entries(value)) {
      const key = Array.isArray(value) ? Number(name) : name
      const location = locations.get(key)
      const at = [...path, key]
      if (location?.from === 'flag' || typeof inner !== 'string' || !inner.includes('${')) {
        define(copy, key, location?.from === 'flag' ? inner : visit(inner, at))
        continue
      }
      const { text, names, faults } = expand(inner, env)
      if (faults.length > 0 && sendsNothing && path[0] === 'service') {
        if (key === 'base_url') define(copy, key, UNKNOWN_SERVICE)
        continue
      }
      for (const fault of faults) problems.add(at, fault)
      define(copy, key, text)
      locations.set(key, { ...location, names, isWhole: WHOLE.test(inner) } as Location)
    }
    return located(copy, locations)
  }
  return { ...tree, root: visit(tree.root, []) }
}
