import { getOrInsert, type Pipeline, parseInstant } from '../../core/index.ts'
import {
  type Problem,
  type ProblemCause,
  planRepair,
  type Repair,
  type Verification,
  verifyDataSet,
} from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { checkRequirements, readMaskKey, readVerifyingKey } from '../../pipeline/index.ts'
import { command, flag, type Io, stringValue, wrongUsage } from '../command-line/command.ts'
import { DATA_SET, dataSetFrom, OUTPUT, pipelineFrom } from '../command-line/pipeline-options.ts'
import { completenessText } from '../results/summary.ts'
import { DONE, FAILED } from '../terminal/exit-code.ts'
import { canAsk, requireYes } from '../terminal/prompts.ts'
import type { Style } from '../terminal/screen.ts'
import { untilStopped } from '../terminal/signals.ts'
import { count, counted, plainLine, shownPath } from '../terminal/text.ts'
import { exportPipeline } from '../work/export-pipeline.ts'

export const verify = command({
  positionals: { pipeline: DATA_SET },
  flags: {
    output: OUTPUT,
    json: flag('Print the result as JSON'),
    all: flag('A line for each problem instead of each cause'),
    fix: flag('Export damaged shards again; shows the cost and asks first'),
    signature: flag('Also check that the manifest is signed under the key given by --key', {
      needs: ['key'],
      excludes: ['fix'],
    }),
    key: stringValue('With --signature: file of the public Ed25519 key, PEM', { needs: ['signature'] }),
    'not-before': stringValue('With --signature: the last signed run must have ended then or later', {
      needs: ['signature'],
    }),
    complete: flag('Exit 1 also if not everything that the file plans is exported'),
    yes: flag('Do not ask'),
    'allow-plaintext': flag('With --fix: consent to transform.secret: plaintext'),
    'no-progress': flag('With --fix: no progress line'),
  },
  examples: [
    ['$0 verify pipeline.yaml', 'Sizes, checksums, rows, columns, masking'],
    ['$0 verify pipeline.yaml --fix', 'Export damaged shards anew'],
    ['$0 verify pipeline.yaml --complete', 'For scripts: exit 1 unless all is exported, too'],
    ['$0 verify pipeline.yaml --signature --key pub.pem', 'And that it is what was signed'],
  ],
  async run(args, io) {
    const signedBy = args.key === undefined ? null : await readVerifyingKey(args.key, io)
    const notBeforeMs = timeOf(args.notBefore)
    const { pipeline, differences } = await dataSetFrom(args, io)
    const { screen, stdout } = io
    let shards = 0
    const onShard = (path: string): void =>
      screen.showNowAndThen(`shard ${count(++shards)}: ${plainLine(path)}`)
    const options = { onShard, signedBy, notBeforeMs, differences, version }
    const result = await verifyDataSet(pipeline, options).finally(() => screen.clear())
    const signature = signedBy === null ? null : { notBefore: args.notBefore ?? null }
    const view = { name: pipeline.name, all: args.all, signature, style: stdout.style }
    await stdout.result(args.json, result, verificationLines(result, view))
    if (result.ok) return args.complete && !mayBeCalledComplete(result) ? FAILED : DONE
    return args.fix ? await fix(result, args, io) : FAILED
  },
})

/** Items in quarantine are left out by intent, as far as `transform.max_quarantined` permits them. */
function mayBeCalledComplete({ complete, left_out }: Verification): boolean {
  return complete && left_out.beyond_limit === 0
}

/** Epoch ms; null: not given. */
function timeOf(notBefore: string | undefined): number | null {
  if (notBefore === undefined) return null
  const at = parseInstant(DATE.test(notBefore) ? `${notBefore}T00:00:00Z` : notBefore)
  if (at !== null) return at / 1000
  const next = 'Give a date or a time in UTC: 2024-07-01, 2024-07-01T06:00:00Z.'
  throw wrongUsage('--not-before is no date and no time', next)
}

const DATE = /^\d{4}-\d\d-\d\d$/

type FixArgs = {
  readonly pipeline: string
  readonly yes: boolean
  readonly allowPlaintext: boolean
  readonly json: boolean
  readonly noProgress: boolean
}

/** Runs the pipeline, which exports again what is damaged. @returns the exit code of that run */
async function fix({ problems }: Verification, args: FixArgs, io: Io): Promise<number> {
  const pipeline = await pipelineFrom(args.pipeline, {}, io)
  const { allowPlaintext, json, noProgress } = args
  await checkRequirements(pipeline, { env: io.env, allowPlaintext })
  const repair = await planRepair(pipeline, problems, Date.now(), await readMaskKey(pipeline, io.env))
  if (!args.yes) await askToFix(pipeline, repair, io)
  const settings = {
    allowPlaintext,
    redo: repair.redo,
    json,
    noProgress,
  }
  return untilStopped(io, (signals) => exportPipeline(pipeline, settings, signals, io))
}

async function askToFix(pipeline: Pipeline, { redo, rows, shards, pages }: Repair, io: Io): Promise<void> {
  const { screen, cwd } = io
  const cost =
    redo.length === 0
      ? 'A run repairs this; nothing needs to be exported again.'
      : `This removes ${counted(shards, 'shard')} with ${counted(rows, 'row')} and exports them anew${pages === 0 ? '' : `; they took ${counted(pages, 'page')}`}.`
  if (canAsk(screen)) screen.write(`${cost}\n`)
  await requireYes(screen, {
    what: '--fix changes the data set',
    cost,
    where: shownPath(pipeline.load.path, cwd),
    question: 'Go on?',
    next: 'Run `verify --fix` again any time.',
  })
}

const SHOWN = 3

type VerificationView = {
  readonly name: string
  /** A line for each problem instead of each cause. */
  readonly all: boolean
  /** null: the signature was not checked. */
  readonly signature: { readonly notBefore: string | null } | null
  readonly style: Style
}

/**
 * What `verify` prints for people: whether the files are intact, with a line for each cause or problem, and whether the
 * data set is complete.
 */
function* verificationLines(result: Verification, view: VerificationView): Generator<string> {
  yield* fileLines(result, view)
  const { hidden } = result
  if (hidden.length > 0)
    yield `${counted(hidden.length, 'hidden file')}, which no reader takes: ${plainLine(hidden.slice(0, SHOWN).join(', '))}`
  const { style } = view
  if (!result.ok) {
    const hint = result.complete ? 'Everything planned was exported' : completenessText(result)
    const areAll = (cause: ProblemCause): boolean =>
      result.problems.every((problem) => problem.cause === cause)
    yield areAll('summary_page')
      ? `${style('red', 'The summary page is WRONG, see above')}; the files are intact. ${hint}.`
      : areAll('signature')
        ? `${style('red', 'The export is NOT SIGNED as it is, see above')}. ${hint}; \`verify\` without --signature checks the files alone.`
        : result.problems.some(({ cause }) => cause === 'checkpoint')
          ? `${style('red', 'The checkpoint is DAMAGED, see above')}. ${hint}; restore _state from a backup, or start over with \`run --fresh\`.`
          : `${style('red', 'The export is DAMAGED, see above')}. ${hint}; \`verify --fix\` exports again what is damaged.`
    return
  }
  const [first, ...rest] = completenessText(result).split(': ')
  const verdict = style(result.complete ? 'green' : 'red', first!)
  yield `${[verdict, ...rest].join(': ')}.`
  if (result.repeated_ids > 0) yield repeatedText(result.repeated_ids)
  const { quarantined, beyond_limit: beyond, max_quarantined: limit } = result.left_out
  if (quarantined === 0) return
  yield beyond === 0
    ? `transform.max_quarantined: ${limit} permits the items in quarantine.`
    : `${style('red', counted(beyond, 'partition'))} ${beyond === 1 ? 'has' : 'have'} more items in quarantine than transform.max_quarantined: ${limit} permits; \`run --redo\` exports them again.`
}

/** Exporting them again would find the same. */
function repeatedText(rows: number): string {
  const are = rows === 1 ? 'row has an id that its query' : 'rows have an id that their query'
  return `${count(rows)} ${are} already has: the service sent them again, too late to be recognized. \`load --mode upsert\` and the view \`<table>_latest\` keep one of each.`
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
  for (const problem of problems) getOrInsert(groups, problem.cause, () => []).push(problem)
  return [...groups.values()]
}

/** Where problems of one cause are, and what is wrong with the first. */
function groupLine(problems: readonly Problem[]): string {
  const [first] = problems
  if (first === undefined) return ''
  const paths = [...new Set(problems.map(({ path }) => plainLine(path)))]
  const more = paths.length > SHOWN ? ` and ${count(paths.length - SHOWN)} more` : ''
  const differ = problems.some(({ problem }) => problem !== first.problem)
  return `${paths.slice(0, SHOWN).join(', ')}${more}  ${plainLine(first.problem)}${differ ? ' (the first)' : ''}`
}
