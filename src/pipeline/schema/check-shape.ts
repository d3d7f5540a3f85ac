import type * as z from 'zod'
import { describe, didYouMean, hintFor, nearest, shown } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import {
  dotted,
  isContainer,
  isMapping,
  locationAt,
  type Mapping,
  type Path,
  type Tree,
  valueAt,
} from '../problems/tree.ts'
import { type PipelineFile, pipelineFile } from './file-schema.ts'

type Issue = z.core.$ZodIssue

/**
 * Checks each key by itself and reports its problems. Invalid keys are then removed (or replaced, if required), so that
 * the checks of several keys can still run on the rest.
 */
export function checkShape(tree: Tree, problems: Problems): PipelineFile {
  let result = parsed(tree.root)
  if (!result.success && retypeReferences(tree, result.error.issues)) result = parsed(tree.root)
  if (result.success) return result.data
  const issues = result.error.issues.flatMap((issue) => unfolded(issue, tree))
  // Unknown keys first: one that was mistyped explains why another is missing.
  const isUnknown = (issue: Issue) => (issue.code === 'unrecognized_keys' ? 0 : 1)
  const paths = new Set(issues.map(({ path }) => dotted(path as Path)))
  const isMissing = (path: Path) => paths.has(dotted(path)) && valueAt(tree, path) === undefined
  for (const issue of issues.toSorted((a, b) => isUnknown(a) - isUnknown(b))) {
    report(issue, tree, problems, isMissing)
  }
  if (!isMapping(tree.root)) throw problems.error()
  const rest = parsed(withoutFaults(tree.root, issues, problems))
  if (rest.success) return rest.data
  throw problems.error()
}

/** Without zod's generated code: to generate it takes longer than to read a file without. */
function parsed(root: unknown): ReturnType<typeof pipelineFile.safeParse> {
  return pipelineFile.safeParse(root, { jitless: true })
}

/** If a value may be a mapping or a list or something else, and is one of these: the issues within it. */
function unfolded(issue: Issue, tree: Tree): readonly Issue[] {
  if (issue.code !== 'invalid_union' || !isContainer(valueAt(tree, issue.path as Path))) return [issue]
  const inside = issue.errors.find((issues) =>
    issues.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  )
  return inside?.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })) ?? [issue]
}

/**
 * `retries: ${RETRIES}` is a string at first. If a string is invalid there, the value that YAML would read may be
 * valid.
 */
function retypeReferences(tree: Tree, issues: readonly Issue[]): boolean {
  let changed = false
  for (const { path } of issues) {
    const { location, exact } = locationAt(tree, path as Path)
    const key = path.at(-1)
    if (!exact || key === undefined || location?.from !== 'file' || location.retyped === undefined) continue
    Reflect.set(valueAt(tree, path.slice(0, -1) as Path) as object, key, location.retyped)
    changed = true
  }
  return changed
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
    if (meant !== null && valueAt(tree, [...path, meant]) === undefined) problems.suppress([...path, meant])
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

/** Values for required keys that are invalid. No pipeline is made of them: the problem is reported already. */
const PLACEHOLDERS = {
  name: 'unnamed',
  service: { base_url: 'https://service.invalid' },
  extract: {},
} as const

/**
 * A copy without the keys that have issues, two levels deep, as optional keys are. Of a list there, only the items that
 * have issues are left out, which `problems` is told.
 */
function withoutFaults(root: Mapping, issues: readonly Issue[], problems: Problems): Mapping {
  const copy: Mapping = { ...root }
  for (const [key, value] of Object.entries(copy)) if (isMapping(value)) copy[key] = copyOf(value)
  for (const issue of issues) {
    const faults =
      issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]
    for (const [section, key, index] of faults) remove(copy, section, key, index)
  }
  for (const [section, inner] of Object.entries(copy)) {
    if (isMapping(inner)) closeGaps(inner, section, problems)
  }
  const service = isMapping(copy.service) ? copy.service : {}
  return { ...PLACEHOLDERS, ...copy, service: { ...PLACEHOLDERS.service, ...service } }
}

function copyOf(inner: Mapping): Mapping {
  const copy: Mapping = { ...inner }
  for (const [key, value] of Object.entries(copy)) if (Array.isArray(value)) copy[key] = [...value]
  return copy
}

/** An item of a list leaves a gap, so that others keep their index. */
function remove(root: Mapping, section?: PropertyKey, key?: PropertyKey, index?: PropertyKey): void {
  if (section === undefined) return
  const inner = root[String(section)]
  if (key === undefined || !isMapping(inner)) {
    delete root[String(section)]
    return
  }
  const list = inner[String(key)]
  if (!Array.isArray(list) || index === undefined) {
    delete inner[String(key)]
    return
  }
  delete list[Number(index)]
}

function closeGaps(inner: Mapping, section: string, problems: Problems): void {
  for (const [key, list] of Object.entries(inner)) {
    if (!Array.isArray(list)) continue
    const kept = Object.keys(list).map(Number)
    if (kept.length === list.length) continue
    problems.keepItems([section, key], kept)
    if (kept.length === 0) delete inner[key]
    else inner[key] = kept.map((i) => list[i])
  }
}
