import type { Problems } from '../problems/problems.ts'
import {
  define,
  isContainer,
  keyOf,
  locationAt,
  type Origin,
  type Path,
  type Tree,
} from '../problems/tree.ts'
import { type Environment, emptyIfSet, variable } from '../secrets/secrets.ts'

type Expanded = {
  readonly text: string
  /** Variables that the text was made from. */
  readonly variables: readonly string[]
  /** Errors; the text is not usable then. */
  readonly problems: readonly string[]
}

const REFERENCE = /\$\$\{|\$\{([^}]*)(\})?/g
const WHOLE = /^\$\{[^}]*\}$/
const BODY = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
const MALFORMED = 'malformed reference; write ${NAME} or ${NAME:-default}, and $${ for ${ itself'

/** Stands for an address that nothing is sent to. */
export const UNKNOWN_SERVICE = 'https://service.invalid'

/**
 * Expands `${VAR}` and `${VAR:-default}` (used if the variable is unset or empty), once: values of variables are not
 * expanded again. `$${` becomes `${`.
 */
export function expand(text: string, env: Environment): Expanded {
  const variables = new Set<string>()
  const problems: string[] = []
  const expanded = text.replace(REFERENCE, (_, body: string | undefined, end: string | undefined) => {
    if (body === undefined) return '${'
    const match = BODY.exec(body)
    if (match === null || end === undefined || match[2]?.includes('${')) {
      problems.push(MALFORMED)
      return ''
    }
    const [, name = '', fallback] = match
    variables.add(name)
    const value = variable(name, env) || fallback
    if (value !== undefined) return value
    const how = emptyIfSet(name, env) === '' ? 'is empty' : 'is not set'
    problems.push(`the environment variable ${name} ${how}; set it, or give a default: \${${name}:-default}`)
    return ''
  })
  return { text: expanded, variables: [...variables], problems: [...new Set(problems)] }
}

/** The variables that a text refers to. */
export function namesIn(text: string): readonly string[] {
  return [...text.matchAll(REFERENCE)].flatMap(([, body]) => BODY.exec(body ?? '')?.[1] ?? [])
}

/**
 * The value that YAML would read in a plain scalar: a number, a boolean or nothing; undefined: a string.
 * Never a list or a mapping, so that the value of a variable cannot add keys to the file.
 */
export function retyped(text: string): number | boolean | null | undefined {
  if (text === '') return null
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  if (/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) return Number(text)
  return undefined
}

/**
 * Expands `${VAR}` in every string of the file, but not in values of flags.
 * @param isUnsetFine by the path of a setting: whether it may name a variable that is not set, and gets a placeholder
 */
export function expandTree(
  tree: Tree,
  env: Environment,
  problems: Problems,
  isUnsetFine: (path: Path) => boolean = () => false,
): Tree {
  const variables = new Map<string, Origin>()
  const text = (value: string, path: Path): string | undefined => {
    if (!value.includes('${') || locationAt(tree, path).location?.from === 'flag') return value
    const expanded = expand(value, env)
    if (expanded.problems.length > 0 && isUnsetFine(path))
      return path.at(-1) === 'base_url' ? UNKNOWN_SERVICE : undefined
    for (const problem of expanded.problems) problems.add(path, problem)
    variables.set(keyOf(path), { names: expanded.variables, isWhole: WHOLE.test(value) })
    return expanded.text
  }
  const visit = (value: unknown, path: Path): unknown => {
    if (typeof value === 'string') return text(value, path)
    if (Array.isArray(value)) return value.map((item, i) => visit(item, [...path, i]))
    if (!isContainer(value)) return value
    const copy = {}
    for (const [key, inner] of Object.entries(value)) {
      const expanded = visit(inner, [...path, key])
      if (expanded !== undefined) define(copy, key, expanded)
    }
    return copy
  }
  return { ...tree, root: visit(tree.root, []), variables }
}
