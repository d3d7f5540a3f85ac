import type { Problem, ProblemCause, Verification } from '../../run/index.ts'
import { plainLine } from '../terminal/plain-text.ts'
import { count, counted } from '../terminal/quantities.ts'
import type { Style } from '../terminal/style.ts'
import { completenessText } from './completeness.ts'

/** So many paths say where to look. */
const SHOWN = 3

type VerificationView = {
  readonly name: string
  /** Each problem for itself. */
  readonly all: boolean
  /** As it was requested; null: it was not. */
  readonly signature: { readonly notBefore: string | null } | null
  readonly style: Style
}

/**
 * What `verify` prints for people: whether the files are right, with a line for each cause or each problem, and then
 * whether they are all that the file plans. The one says nothing about the other.
 */
export function* verificationLines(result: Verification, view: VerificationView): Generator<string> {
  yield* fileLines(result, view)
  const { style } = view
  const [first, ...rest] = completenessText(result).split(': ')
  const verdict = style(result.complete ? 'green' : 'red', first!)
  yield `${[verdict, ...rest].join(': ')}.`
}

function* fileLines(
  { ok, shards, rows, problems }: Verification,
  { name, all, signature, style }: VerificationView,
): Generator<string> {
  const read = `${counted(shards, 'shard')}, ${counted(rows, 'row')}`
  if (ok) {
    const intact = shards === 0 ? 'there is no file to check' : 'the files are intact'
    yield `${style('bold', name)}: ${style('green', intact)}: ${read}`
    if (signature === null) return
    const latest =
      signature.notBefore === null
        ? 'which does not show that they are the latest: an older export that was signed passes as well (--not-before)'
        : `after a run that ended at ${signature.notBefore} or later`
    yield `They are signed under this key, ${latest}.`
    return
  }
  yield `${style('bold', name)}: ${style('red', counted(problems.length, 'problem'))} in ${read}`
  const groups = all ? problems.map((problem) => [problem]) : byCause(problems)
  for (const group of groups) yield `  ${groupLine(group)}`
  if (groups.length < problems.length) yield '  --all shows each'
}

function byCause(problems: readonly Problem[]): readonly (readonly Problem[])[] {
  const groups = new Map<ProblemCause, Problem[]>()
  for (const problem of problems) {
    const group = groups.get(problem.cause)
    if (group === undefined) groups.set(problem.cause, [problem])
    else group.push(problem)
  }
  return [...groups.values()]
}

function groupLine(problems: readonly Problem[]): string {
  const [first] = problems
  if (first === undefined) return ''
  const { path, problem, cause } = first
  if (problems.length === 1) return `${plainLine(path)}  ${plainLine(problem)}`
  const shown = problems.slice(0, SHOWN).map((each) => plainLine(each.path))
  const more = problems.length - shown.length
  const paths = more > 0 ? `${shown.join(', ')} and ${count(more)} more` : shown.join(', ')
  return `${count(problems.length)} ${COMMON[cause](plainLine(problem))}: ${paths}`
}

/** What several have in common, given what is the matter with the first. */
const COMMON: Readonly<Record<ProblemCause, (first: string) => string>> = {
  missing: () => 'shards are missing',
  size: () => 'shards are longer or shorter than the journal says',
  checksum: () => 'shards have another SHA-256 than the journal says',
  unreadable: (first) => `shards can not be read (the first: ${first})`,
  rows: () => 'shards hold more or fewer rows than the journal says',
  columns: (first) => `shards have other columns than the pipeline (the first: ${first})`,
  unmasked: (first) => `shards hold values that are not masked (the first: ${first})`,
  repeated_ids: () => 'shards hold ids that their query has had before',
  not_on_record: () => 'files are in no journal entry: a reader would take their rows for data',
  manifest: () => 'shards are others in the manifest than in the journal',
  another_data_set: (first) => `problems with whose data set it is (the first: ${first})`,
  signature: (first) => `problems with the signature (the first: ${first})`,
  checkpoint: (first) => `problems with the checkpoint (the first: ${first})`,
  nothing_exported: (first) => `problems (the first: ${first})`,
}
