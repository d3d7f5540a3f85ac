import type * as z from 'zod'
import { describe, didYouMean, hintFor, nearest, shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import {
  isContainer,
  locationAt,
  type Mapping,
  type Path,
  type Tree,
  valueAt,
  withValue,
} from '../problems/tree.ts'
import { retyped } from '../yaml/expand.ts'
import { type PipelineFile, pipelineFile } from './file-schema.ts'
import { type Key, keysOf, whyIdle } from './key.ts'

type Issue = z.core.$ZodIssue
type UnknownKeys = z.core.$ZodIssueUnrecognizedKeys

/**
 * Checks keys, then whether they have an effect. Unknown keys are reported and left out, so that problems with values are
 * found as well. @returns also the values, typed @throws ExportError 'config'
 */
export function checkShape(problems: Problems) {
  const { tree } = problems
  // Without zod's generated code: to generate it takes longer than to read a file without.
  const parsed = (root: unknown) => pipelineFile.safeParse(root, { jitless: true })
  let { root } = tree
  let result = parsed(root)
  if (!result.success) {
    root = retypeReferences(tree, result.error.issues)
    if (root !== tree.root) result = parsed(root)
  }
  if (!result.success) {
    const { issues } = result.error
    reportAll(issues, problems)
    const unknown = issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue : []))
    result = parsed(unknown.reduce(withoutKeys, root))
    if (!result.success) throw problems.error()
    return { settings: result.data, root }
  }
  problems.throwIfAny()
  refuseIdleKeys(keysOf(pipelineFile), [], result.data, problems)
  problems.throwIfAny()
  return { settings: result.data, root }
}

function withoutKeys(root: unknown, { path, keys }: Pick<UnknownKeys, 'path' | 'keys'>): unknown {
  const at = path as Path
  const unknown = new Set(keys)
  const members = Object.entries(valueAt(root, at) as Mapping).filter(([name]) => !unknown.has(name))
  return withValue(root, at, Object.fromEntries(members))
}

function refuseIdleKeys(
  keys: readonly Key[],
  parent: Path,
  settings: PipelineFile,
  problems: Problems,
): void {
  for (const key of keys) {
    const path = [...parent, key.name]
    const why = problems.given(path) ? whyIdle(key, settings) : null
    if (why !== null) problems.add(path, why, 'key')
    else refuseIdleKeys(key.keys ?? [], path, settings, problems)
  }
}

function reportAll(all: readonly Issue[], problems: Problems): void {
  const { tree } = problems
  const issues = all.flatMap((issue) => unfolded(issue, tree))
  for (const issue of issues) {
    // Unknown keys first: one that was mistyped explains why another is missing.
    if (issue.code !== 'unrecognized_keys') continue
    const known = issue.message.split(', ')
    for (const key of issue.keys) {
      const isSecret = known.includes(`${key}_env`)
      const meant = isSecret ? `${key}_env` : nearest(key, known)
      const advice = isSecret
        ? `; a secret is never written in the file: \`${meant}\` names the environment variable that holds it`
        : didYouMean(key, known)
      const text = `unknown key \`${shown(key)}\`${advice}; allowed: ${issue.message}`
      problems.addKey(issue.path as Path, key, text)
      const place = [...(issue.path as Path), meant ?? key]
      if (valueAt(tree.root, place) === undefined) problems.suppress(place)
    }
  }
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') continue
    const path = issue.path as Path
    const fault = issue.code === 'custom' && issue.params?.fault ? `: ${issue.params.fault}` : ''
    const words =
      issue.code === 'invalid_value' ? issue.values.filter((word) => typeof word === 'string') : []
    const found = describe(tree, path)
    const text =
      found === null
        ? `missing; expected ${issue.message}`
        : `expected ${issue.message}, found ${found}${fault}${hintFor(tree, path, words)}`
    problems.add(path, text)
  }
}

/** If a value may be a mapping or a list or something else, and is one of these: the issues within it. */
function unfolded(issue: Issue, tree: Tree): readonly Issue[] {
  if (issue.code !== 'invalid_union' || !isContainer(valueAt(tree.root, issue.path as Path))) return [issue]
  const inside = issue.errors.find((issues) =>
    issues.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  )
  return inside?.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })) ?? [issue]
}

/** `retries: ${RETRIES}` is a string at first. Where a string is invalid, a lone reference is what YAML would read. */
function retypeReferences(tree: Tree, issues: readonly Issue[]): unknown {
  let all = tree.root
  for (const issue of issues) {
    const path = issue.path as Path
    const text = valueAt(tree.root, path)
    const { location, exact } = locationAt(tree, path)
    if (typeof text !== 'string' || !exact || location?.from !== 'file' || !location.isWhole) continue
    const value = retyped(text)
    if (value !== undefined) all = withValue(all, path, value)
  }
  return all
}
