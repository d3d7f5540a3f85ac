import type * as z from 'zod'
import { describe, didYouMean, hintFor, nearest, shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import {
  dotted,
  isContainer,
  locationAt,
  type Path,
  type Tree,
  valueAt,
  withValue,
} from '../problems/tree.ts'
import { retyped } from '../yaml/expand.ts'
import { type PipelineFile, pipelineFile } from './file-schema.ts'
import { type Key, keysOf, whyIdle } from './key.ts'

type Issue = z.core.$ZodIssue

/** The settings, and the values that they were made from, each of its type. */
type Checked = { readonly settings: PipelineFile; readonly root: unknown }

/**
 * Checks each key by itself, then whether it has an effect. What else needs several keys is checked only when the shape
 * is right.
 * @throws ExportError 'config' with every problem, those found before among them
 */
export function checkShape(tree: Tree, problems: Problems): Checked {
  let { root } = tree
  let result = parsed(root)
  if (!result.success) {
    root = retypeReferences(tree, result.error.issues)
    if (root !== tree.root) result = parsed(root)
  }
  if (result.success) {
    problems.throwIfAny()
    refuseIdleKeys(keysOf(pipelineFile), [], result.data, problems)
    problems.throwIfAny()
    return { settings: result.data, root }
  }
  const issues = result.error.issues.flatMap((issue) => unfolded(issue, tree))
  // Unknown keys first: one that was mistyped explains why another is missing.
  const isUnknown = (issue: Issue) => (issue.code === 'unrecognized_keys' ? 0 : 1)
  const paths = new Set(issues.map(({ path }) => dotted(path as Path)))
  const isMissing = (path: Path) => paths.has(dotted(path)) && valueAt(tree.root, path) === undefined
  for (const issue of issues.toSorted((a, b) => isUnknown(a) - isUnknown(b))) {
    report(issue, tree, problems, isMissing)
  }
  throw problems.error()
}

/** Without zod's generated code: to generate it takes longer than to read a file without. */
function parsed(root: unknown): ReturnType<typeof pipelineFile.safeParse> {
  return pipelineFile.safeParse(root, { jitless: true })
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

/** If a value may be a mapping or a list or something else, and is one of these: the issues within it. */
function unfolded(issue: Issue, tree: Tree): readonly Issue[] {
  if (issue.code !== 'invalid_union' || !isContainer(valueAt(tree.root, issue.path as Path))) return [issue]
  const inside = issue.errors.find((issues) =>
    issues.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  )
  return inside?.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })) ?? [issue]
}

/**
 * `retries: ${RETRIES}` is a string at first. Where a string is invalid, a value that is one reference and nothing else
 * is what YAML would read.
 */
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

/** @param isMissing whether a key is required and not there */
function report(issue: Issue, tree: Tree, problems: Problems, isMissing: (path: Path) => boolean): void {
  const path = issue.path as Path
  if (issue.code !== 'unrecognized_keys') {
    const found = describe(tree, path)
    problems.add(
      path,
      found === null
        ? `missing; expected ${issue.message}`
        : `expected ${issue.message}, found ${found}${faultOf(issue)}${hintFor(tree, path, wordsOf(issue))}`,
    )
    return
  }
  const known = issue.message.split(', ')
  for (const key of issue.keys) {
    const name = shown(key)
    const meant = known.includes(`${key}_env`) ? `${key}_env` : nearest(key, known)
    const advice = known.includes(`${key}_env`)
      ? `; a secret is never written in the file: \`${meant}\` names the environment variable that holds it`
      : didYouMean(key, known)
    const missing = meant !== null && isMissing([...path, meant]) ? `; \`${meant}\` is missing` : ''
    problems.addKey(path, key, `unknown key \`${name}\`${advice}${missing}; allowed: ${issue.message}`)
    if (meant !== null && valueAt(tree.root, [...path, meant]) === undefined)
      problems.suppress([...path, meant])
  }
}

/** The words of which a value has to be one; none: others are allowed, too. */
function wordsOf(issue: Issue): readonly string[] {
  return issue.code === 'invalid_value' ? issue.values.filter((word) => typeof word === 'string') : []
}

/** More about an invalid value than what it is, if there is more. */
function faultOf(issue: Issue): string {
  const fault: unknown = issue.code === 'custom' ? issue.params?.fault : undefined
  return typeof fault === 'string' ? `: ${fault}` : ''
}
