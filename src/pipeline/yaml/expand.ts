import type { Problems } from '../problems/problems.ts'
import { type Container, isContainer, type Path, type Tree } from '../problems/tree.ts'
import { type Environment, variable } from '../secrets/secrets.ts'

type Expanded = {
  readonly text: string
  /** Variables that the text was made from. */
  readonly variables: readonly string[]
  /** Errors; the text is not usable then. */
  readonly problems: readonly string[]
  /** Whether the text was one reference and nothing else. */
  readonly whole: boolean
}

const REFERENCE = /\$\$\{|\$\{([^}]*)(\})?/g
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
  let whole = false
  const expanded = text.replace(
    REFERENCE,
    (found: string, body: string | undefined, end: string | undefined) => {
      if (body === undefined) return '${'
      const match = BODY.exec(body)
      if (match === null || end === undefined || match[2]?.includes('${')) {
        problems.push(MALFORMED)
        return ''
      }
      const [, name = '', fallback] = match
      const isSet = Object.hasOwn(env, name) && env[name] !== undefined
      if (!isSet && fallback === undefined) {
        problems.push(
          `the environment variable ${name} is not set; set it, or give a default: \${${name}:-default}`,
        )
        return ''
      }
      variables.add(name)
      whole = found.length === text.length
      return variable(name, env) || (fallback ?? '')
    },
  )
  return { text: expanded, variables: [...variables], problems: [...new Set(problems)], whole }
}

/** The variables that a text refers to. */
export function namesIn(text: string): readonly string[] {
  return [...text.matchAll(REFERENCE)].flatMap(([, body]) => BODY.exec(body ?? '')?.[1] ?? [])
}

/**
 * The value that YAML would read in a plain scalar: a number, a boolean or null; undefined: a string.
 * Never a list or a mapping, so that the value of a variable cannot add keys to the file.
 */
function retype(text: string): number | boolean | null | undefined {
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  if (/^(?:null|Null|NULL|~|)$/.test(text)) return null
  if (/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) return Number(text)
  return undefined
}

/**
 * Expands `${VAR}` in every string of the file, in place, but not in values of flags.
 * @param isUnsetFine by the path of a setting: whether it may name a variable that is not set, and gets a placeholder
 */
export function expandTree(
  tree: Tree,
  env: Environment,
  problems: Problems,
  isUnsetFine: (path: Path) => boolean = () => false,
): void {
  const visit = (container: Container, path: Path): void => {
    for (const [key, location] of tree.locations.get(container) ?? []) {
      const value = Reflect.get(container, key)
      const inner = [...path, key]
      if (isContainer(value)) visit(value, inner)
      if (typeof value !== 'string' || location.from === 'flag' || !value.includes('${')) continue
      const expanded = expand(value, env)
      if (expanded.problems.length > 0 && isUnsetFine(inner)) {
        if (key === 'base_url') Reflect.set(container, key, UNKNOWN_SERVICE)
        else Reflect.deleteProperty(container, key)
        continue
      }
      for (const problem of expanded.problems) problems.add(inner, problem)
      Reflect.set(container, key, expanded.text)
      const retyped = location.plain && expanded.whole ? retype(expanded.text) : undefined
      tree.locations.get(container)?.set(key, {
        ...location,
        variables: expanded.variables,
        ...(retyped === undefined ? {} : { retyped }),
      })
    }
  }
  if (isContainer(tree.root)) visit(tree.root, [])
}
