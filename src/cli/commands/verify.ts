import { getOrInsert, type Pipeline, parseInstant, runCommand, shellWord } from '../../core/index.ts'
import {
  type CatalogComparison,
  type Problem,
  type ProblemCause,
  type Verification,
  verifyDataSet,
} from '../../data-set/index.ts'
import { readVerifyingKey } from '../../pipeline/index.ts'
import { verdictJson } from '../../state/index.ts'
import { flag, stringValue, wrongUsage } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { catalogJson, catalogText, comparedCatalog, remedyOf } from '../results/catalog.ts'
import { headlineText, reasonLines } from '../results/verdict.ts'
import { DONE, FAILED } from '../terminal/exit-code.ts'
import type { Style } from '../terminal/screen.ts'
import { count, counted, plainLine } from '../terminal/text.ts'

export const verify = dataSetCommand('read', {
  flags: {
    json: flag('Print the result as JSON'),
    all: flag('A line for each problem instead of each cause'),
    signature: flag('Also check that the manifest is signed under the key given by --key', {
      needs: ['key'],
    }),
    key: stringValue('With --signature: file of the public Ed25519 key, PEM', { needs: ['signature'] }),
    'not-before': stringValue('With --signature: the last signed run must have ended then or later', {
      needs: ['signature'],
    }),
    complete: flag('Exit 1 also if not everything that the file plans is exported'),
  },
  examples: [
    ['$0 verify pipeline.yaml', 'Sizes, checksums, rows, columns, masking'],
    ['$0 verify pipeline.yaml --complete', 'For scripts: exit 1 unless all is exported, too'],
    ['$0 verify pipeline.yaml --signature --key pub.pem', 'And that it is what was signed'],
  ],
  eachFile: true,
  async run(args, io, dataSet) {
    const notBeforeMs = timeOf(args.notBefore)
    const { pipeline } = dataSet
    const { screen, stdout } = io
    let shards = 0
    const onShard = (path: string): void => screen.isAt(`shard ${count(++shards)}: ${plainLine(path)}`)
    const signedBy = args.key === undefined ? null : await readVerifyingKey(args.key, io)
    const settings = { onShard, notBeforeMs, signedBy }
    const files = await verifyDataSet(dataSet, settings).finally(() => screen.clear())
    const catalog = await comparedCatalog(pipeline, io)
    const result = withCatalog(files, catalog)
    const signature = args.key === undefined ? null : { notBefore: args.notBefore ?? null }
    const view = { pipeline, all: args.all, signature, style: stdout.style }
    const shown = {
      ...result,
      verdict: verdictJson(result.verdict),
      ...(catalog === null ? {} : { catalog: catalogJson(catalog) }),
    }
    await stdout.result(args.json, shown, verificationLines(result, view))
    if (catalog?.inLine === null) io.log('warn', catalogText(catalog))
    // Items in quarantine are left out by intent, as far as transform.max_quarantined permits them.
    const isComplete = result.complete && result.left_out.beyond_limit === 0
    return result.ok && (!args.complete || isComplete) ? DONE : FAILED
  },
})

/** A catalog that is behind is a problem; one that cannot be compared for want of a variable is none. */
function withCatalog(result: Verification, catalog: CatalogComparison | null): Verification {
  if (catalog === null || catalog.inLine !== false) return result
  const cause = result.unfinished ? 'unfinished' : 'catalog'
  const problem = { path: `catalog ${catalog.table}`, problem: catalog.problem ?? '', cause } as const
  const next = remedyOf(catalog.failure)
  const told = next === null ? problem : { ...problem, next }
  return { ...result, ok: false, problems: [...result.problems, told] }
}

/** Epoch ms; null: not given. */
function timeOf(notBefore: string | undefined): number | null {
  if (notBefore === undefined) return null
  const at = parseInstant(notBefore)
  if (at !== null) return at / 1000
  const next = 'Give a date or a time in UTC: 2024-07-01, 2024-07-01T06:00:00Z.'
  throw wrongUsage('--not-before is no date and no time', next)
}

const SHOWN = 3

type VerificationView = {
  readonly pipeline: Pipeline
  readonly all: boolean
  /** null: the signature was not checked. */
  readonly signature: { readonly notBefore: string | null } | null
  readonly style: Style
}

function* verificationLines(result: Verification, view: VerificationView): Generator<string> {
  yield* fileLines(result, view)
  const { style } = view
  if (result.repeated_ids > 0)
    yield `${counted(result.repeated_ids, 'row')} ${result.repeated_ids === 1 ? 'has' : 'have'} the id of another one of the query: the service sent them again. \`load --mode upsert\` and the view <table>_latest keep one of each.`
  if (!result.ok) {
    yield* verdictLines(result, view)
    return
  }
  if (result.unfinished) yield `${UNFINISHED}.`
  yield `The export is ${headlineText(result.verdict, style)}.`
  yield* reasonLines(result.verdict)
  const { quarantined, beyond_limit: beyond, max_quarantined: limit } = result.left_out
  if (quarantined === 0) return
  yield beyond === 0
    ? `transform.max_quarantined: ${limit} permits the items in quarantine.`
    : `${style('red', counted(beyond, 'partition'))} ${beyond === 1 ? 'has' : 'have'} more items in quarantine than transform.max_quarantined: ${limit} permits; \`run --redo\` exports them again.`
}

const UNFINISHED =
  'A command was stopped before it had finished, or is at work: any command that changes the data set finishes it'

function* verdictLines(result: Verification, { pipeline, style }: VerificationView): Generator<string> {
  const { complete, problems, repair, unfinished } = result
  const hint = complete
    ? 'Everything planned was exported'
    : `The export is ${headlineText(result.verdict, style)}`
  const areAll = (cause: ProblemCause): boolean => problems.every((problem) => problem.cause === cause)
  const run = repairCommand(pipeline, repair)
  const advice = new Set(problems.flatMap(({ next }) => next ?? []))
  if (areAll('unfinished')) {
    yield `${style('red', 'The data set is NOT FINISHED, see above')}. ${UNFINISHED}:`
    yield `  ${run}`
  } else if (problems.every(({ cause }) => cause === 'catalog' || cause === 'table')) {
    const how = advice.size > 0 ? 'NOT IN LINE' : 'BEHIND'
    const what = areAll('catalog') ? `The catalog is ${how}` : 'The tables are NOT AS WRITTEN'
    const verdict = `${style('red', `${what}, see above`)}; the files are intact. ${hint}.`
    if (advice.size > 0) return yield [verdict, ...advice].join(' ')
    yield `${verdict} This brings all in line, as any command does that changes the data set:`
    yield `  spillway tables ${fileOf(pipeline)}`
  } else if (areAll('signature')) {
    yield `${style('red', 'The export is NOT SIGNED as it is, see above')}. ${hint}; \`verify\` without --signature checks the files alone.`
  } else if (problems.some(({ cause }) => cause === 'checkpoint')) {
    yield `${style('red', 'The checkpoint is DAMAGED, see above')}. ${hint}; restore _state from a backup, or remove _state/checkpoint.jsonl: the next run goes on from the manifest.`
  } else {
    yield `${style('red', 'The export is DAMAGED, see above')}. ${hint}.`
    if (unfinished) yield `${UNFINISHED}.`
    if (problems.some(({ cause }) => cause === 'not_on_record'))
      yield 'Move what the manifest does not name out of the data set: commands that change it refuse it.'
    yield* advice
    if (areAll('not_on_record')) return
    yield `${repair.length === 0 ? 'This repairs it; nothing is exported again' : `This exports ${counted(repair.length, 'partition')} again, and what shares a shard with them`}:`
    yield `  ${run}`
  }
}

function repairCommand(pipeline: Pipeline, repair: readonly string[]): string {
  const run = isPath(pipeline) ? `spillway run ${fileOf(pipeline)}` : runCommand(pipeline)
  return [run, ...repair.map((key) => `--redo '${key}'`)].join(' ')
}

/** The path of a data set was given in place of a file. */
function isPath({ file, load }: Pipeline): boolean {
  return file === load.pathAsGiven
}

function fileOf(pipeline: Pipeline): string {
  return isPath(pipeline) ? '<pipeline.yaml>' : shellWord(pipeline.file)
}

function* fileLines(
  { ok, shards, rows, problems }: Verification,
  { pipeline: { name }, all, signature, style }: VerificationView,
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
  for (const problem of problems) getOrInsert(groups, problem.cause, () => []).push(problem)
  return [...groups.values()]
}

function groupLine(problems: readonly Problem[]): string {
  const [first] = problems
  if (first === undefined) return ''
  const paths = [...new Set(problems.map(({ path }) => plainLine(path)))]
  const more = paths.length > SHOWN ? ` and ${count(paths.length - SHOWN)} more` : ''
  const differ = problems.some(({ problem }) => problem !== first.problem)
  return `${paths.slice(0, SHOWN).join(', ')}${more}  ${plainLine(first.problem)}${differ ? ' (the first)' : ''}`
}
