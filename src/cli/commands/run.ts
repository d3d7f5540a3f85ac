import { relative } from 'node:path'
import { checkRequirements } from '../../config/index.ts'
import { ExportError, isExportError, type Pipeline } from '../../core/index.ts'
import { command } from '../command.ts'
import { confirm } from '../confirm.ts'
import { DONE, exitCode, SIGNAL_CODES } from '../exit-code.ts'
import { type ExportSettings, exportPipeline } from '../export-pipeline.ts'
import type { Io } from '../io.ts'
import { type OverrideFlags, pipelineFrom, runPipelineOptions } from '../pipeline-options.ts'
import { announceStop, type StopSignals } from '../signals.ts'

export const run = command({
  options: (yargs) =>
    runPipelineOptions(yargs)
      .positional('pipeline', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Pipeline files, run one after the other',
      })
      .options({
        'fail-fast': { type: 'boolean', default: false, describe: 'Stop at the first partition that fails' },
        fresh: {
          type: 'boolean',
          default: false,
          describe: 'Delete what was exported before and start over; asks first',
        },
        yes: { type: 'boolean', default: false, describe: 'Do not ask' },
        'allow-plaintext': {
          type: 'boolean',
          default: false,
          describe: 'Consent to transform.secret: plaintext for this run',
        },
        json: { type: 'boolean', default: false, describe: 'Print the summary as JSON, one object a line' },
        'no-progress': { type: 'boolean', default: false, describe: 'No progress line' },
      })
      .group(['fail-fast', 'fresh', 'yes', 'allow-plaintext', 'json', 'no-progress'], 'How it runs:')
      .example('$0 run pipeline.yaml', 'Export, or go on')
      .example('$0 run pipeline.yaml --domain example.com --from 2024-01-01', 'A part of it')
      .example('$0 run a.yaml b.yaml --json 2>run.log', 'For scripts'),
  async run(args, io) {
    const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
    try {
      const pipelines = await readAll(args, io)
      if (args.fresh && !args.yes) await askToStartOver(pipelines, io)
      return await runEach(
        pipelines,
        { ...args, subset: args.domain !== undefined, again: null },
        signals,
        io,
      )
    } finally {
      signals.release()
    }
  },
})

type ReadArgs = OverrideFlags & {
  readonly pipeline: readonly string[]
  readonly allowPlaintext: boolean
}

/** Everything that can be known to be wrong is told before anything begins. */
async function readAll(args: ReadArgs, io: Io): Promise<readonly Pipeline[]> {
  const pipelines: Pipeline[] = []
  for (const file of args.pipeline) {
    const pipeline = await pipelineFrom(file, args, io)
    await checkRequirements(pipeline, { env: io.env, cwd: io.cwd, allowPlaintext: args.allowPlaintext })
    pipelines.push(pipeline)
  }
  return pipelines
}

async function askToStartOver(pipelines: readonly Pipeline[], { cwd, screen }: Io): Promise<void> {
  const paths = pipelines.map(({ load }) => relative(cwd, load.path) || '.').join(', ')
  if (!process.stdin.isTTY || !screen.stream.isTTY) {
    throw new ExportError(
      'config',
      '--fresh deletes what was exported before, and there is no terminal to ask on',
      paths,
      'Add --yes if that is what you want.',
    )
  }
  if (await confirm(`Delete everything that was exported to ${paths}, and start over?`, screen)) return
  throw new ExportError('config', 'Nothing was changed', '', 'Run it without --fresh to go on.')
}

async function runEach(
  pipelines: readonly Pipeline[],
  settings: ExportSettings,
  signals: StopSignals,
  io: Io,
): Promise<number> {
  let first = DONE
  for (const pipeline of pipelines) {
    const code = await runOne(pipeline, settings, signals, io)
    if (STOPS_ALL.has(code)) return code
    if (first === DONE) first = code
  }
  return first
}

/** Refused credentials, a used-up quota and signals concern the pipelines that follow as well. */
const STOPS_ALL: ReadonlySet<number> = new Set([
  exitCode('credentials', null),
  exitCode('quota', null),
  ...Object.values(SIGNAL_CODES),
])

async function runOne(
  pipeline: Pipeline,
  settings: ExportSettings,
  signals: StopSignals,
  io: Io,
): Promise<number> {
  try {
    signals.stop.throwIfAborted()
    return await exportPipeline(pipeline, settings, signals, io)
  } catch (error) {
    if (!isExportError(error)) throw error
    io.reportError(error)
    return exitCode(error.kind, io.signals.received)
  }
}
