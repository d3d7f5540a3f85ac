import { checkRequirements, readNamingKey } from '../../config/index.ts'
import { ExportError, type Pipeline } from '../../core/index.ts'
import { planRepair, type Repair, type Verification, verifyDataSet } from '../../run/index.ts'
import { command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { exportPipeline } from '../export-pipeline.ts'
import type { Io } from '../io.ts'
import { pipelineFrom, pipelineOptions } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { count, counted } from '../quantities.ts'
import { shownPath } from '../shown-path.ts'
import { announceStop } from '../signals.ts'
import { type Style, styleFor, wantsColour } from '../style.ts'

// As often as the eye can follow.
const REDRAW_MS = 100

export const verify = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({
        json: { type: 'boolean', default: false, describe: 'Print the result as JSON' },
        fix: {
          type: 'boolean',
          default: false,
          describe: 'Export anew what is damaged; says what it costs and asks first',
        },
        yes: { type: 'boolean', default: false, describe: 'Do not ask' },
        'allow-plaintext': {
          type: 'boolean',
          default: false,
          describe: 'With --fix: consent to transform.secret: plaintext',
        },
        'no-progress': { type: 'boolean', default: false, describe: 'With --fix: no progress line' },
      })
      .example('$0 verify pipeline.yaml', 'Sizes, checksums, rows, columns, masking')
      .example('$0 verify pipeline.yaml --fix', 'Export damaged shards anew'),
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const { screen, stdout } = io
    let shards = 0
    let drawnMs = 0
    const result = await verifyDataSet(pipeline, (path) => {
      shards++
      const nowMs = performance.now()
      if (!screen.canRedraw || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      screen.show(`shard ${count(shards)}: ${plainLine(path)}`.slice(0, screen.columns - 1))
    }).finally(() => screen.clear())
    const style = styleFor(wantsColour(stdout.terminal, io.env))
    await stdout.line(args.json ? plainJson(result) : verificationText(result, pipeline.name, style))
    if (result.ok) return DONE
    return args.fix ? await fix(pipeline, result, args, io) : FAILED
  },
})

type FixArgs = {
  readonly yes: boolean
  readonly allowPlaintext: boolean
  readonly json: boolean
  readonly noProgress: boolean
}

/** Runs the pipeline with what is damaged given up first. @returns the exit code of that run */
async function fix(pipeline: Pipeline, { problems }: Verification, args: FixArgs, io: Io): Promise<number> {
  const { allowPlaintext, json, noProgress } = args
  await checkRequirements(pipeline, { env: io.env, cwd: io.cwd, allowPlaintext })
  const repair = await planRepair(pipeline, problems, Date.now(), await readNamingKey(pipeline, io))
  if (!args.yes) await askToFix(pipeline, repair, io)
  const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
  const settings = {
    allowPlaintext,
    failFast: false,
    fresh: false,
    redo: repair.redo,
    onShard: () => {},
    json,
    noProgress,
    again: null,
  }
  try {
    return await exportPipeline(pipeline, settings, signals, io)
  } finally {
    signals.release()
  }
}

async function askToFix(pipeline: Pipeline, { redo, rows, shards, searches }: Repair, io: Io): Promise<void> {
  const { screen, cwd } = io
  const cost =
    redo.length === 0
      ? 'A run mends this; nothing needs to be exported anew.'
      : `This gives up ${counted(shards, 'shard')} with ${counted(rows, 'row')} and exports them anew; they took ${counted(searches, 'search', 'searches')}.`
  if (!process.stdin.isTTY || !screen.stream.isTTY) {
    throw new ExportError(
      'config',
      `--fix changes the data set, and there is no terminal to ask on. ${cost}`,
      shownPath(pipeline.load.path, cwd),
      'Add --yes if that is what you want.',
    )
  }
  screen.write(`${cost}\n`)
  if (await confirm('Go on?', screen)) return
  throw new ExportError('config', 'Nothing was changed', '', 'Run `verify --fix` again any time.')
}

function verificationText({ ok, shards, rows, problems }: Verification, name: string, style: Style): string {
  const read = `${counted(shards, 'shard')}, ${counted(rows, 'row')}`
  if (ok) return `${style('bold', name)}: ${style('green', 'all is as it should be')}: ${read}`
  return [
    `${style('bold', name)}: ${style('red', counted(problems.length, 'problem'))} in ${read}`,
    ...problems.map(({ path, problem }) => `  ${plainLine(path)}  ${plainLine(problem)}`),
  ].join('\n')
}
