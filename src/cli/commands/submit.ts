import {
  followSubmission,
  openQueue,
  QUEUE_VARIABLE,
  type Queue,
  type Submission,
  submitPipeline,
} from '../../cluster/index.ts'
import { isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { readSecret, submittedFile } from '../../pipeline/index.ts'
import { runOptions } from '../../run-options.ts'
import { command, flag, type Io } from '../command-line/command.ts'
import { ALLOW_PLAINTEXT, FILES, pipelineFrom } from '../command-line/pipeline-options.ts'
import { type FleetRow, fleetTable, unreadRow } from '../results/fleet-table.ts'
import { notBegunJson, printSummary, summaryCode } from '../results/summary.ts'
import { DONE, exitCode, gravest } from '../terminal/exit-code.ts'
import { type StopSignals, unannounced, untilStopped } from '../terminal/signals.ts'
import { plainJson } from '../terminal/text.ts'

export const submit = command({
  positionals: { pipeline: FILES },
  flags: {
    wait: flag('Wait for the end, with the summary and exit codes of `run`'),
    json: flag('Print JSON, one object a pipeline'),
    'allow-plaintext': ALLOW_PLAINTEXT,
  },
  examples: [
    ['$0 submit acme.yaml', 'For workers to take'],
    ['$0 submit tenants/*.yaml --wait --json', 'Many at once, to their end'],
  ],
  async run(args, io) {
    const submitAll = async (signals: StopSignals, queue: Queue): Promise<number> => {
      const { wait, json } = args
      const rows: FleetRow[] | null = wait && !json && args.pipeline.length > 1 ? [] : null
      // They run at the same time, and print in the order of the files.
      let printed: Promise<unknown> = Promise.resolve()
      let turn: Promise<unknown> = Promise.resolve()
      const ended = args.pipeline.map((file) => {
        let onSubmitted = (): void => {}
        const submitted = new Promise<void>((resolve) => {
          onSubmitted = resolve
        })
        const ending = submitOne(file, args, { queue, signals, io, printed, turn, onSubmitted, rows })
        turn = submitted
        printed = Promise.allSettled([printed, ending])
        return ending
      })
      const codes = await Promise.all(ended)
      if (rows !== null) await io.stdout.lines(fleetTable(rows, io.stdout.style))
      return gravest(codes)
    }
    return untilStopped(io, (signals) => withQueue(io, (queue) => submitAll(signals, queue)), unannounced)
  },
})

type Args = { readonly wait: boolean; readonly json: boolean; readonly allowPlaintext: boolean }
type SubmitContext = {
  readonly queue: Queue
  readonly signals: StopSignals
  readonly io: Io
  /** Resolves when the results of the pipelines before this one are printed. */
  readonly printed: Promise<unknown>
  /** Resolves when those before it are in the queue. */
  readonly turn: Promise<unknown>
  /** It is in the queue, or never will be. */
  readonly onSubmitted: () => void
  /** Of several, in place of a summary for each; null: there is one, or it is JSON. */
  readonly rows: FleetRow[] | null
}

async function submitOne(
  file: string,
  args: Args,
  { queue, signals, io, printed, turn, onSubmitted, rows }: SubmitContext,
): Promise<number> {
  const { stdout, cwd, env } = io
  const { stop, abort } = signals
  let pipeline: Pipeline | null = null
  try {
    // The token may be with the workers alone.
    pipeline = await pipelineFrom(file, {}, io)
    const { name } = pipeline
    const log: Io['log'] = (level, message, fields) => io.log(level, message, { pipeline: name, ...fields })
    const { allowPlaintext } = args
    const options = await runOptions(pipeline, { env, stop, abort, onLog: log, allowPlaintext })
    const submitted = await submitPipeline(pipeline, await submittedFile(file, cwd), queue, options, turn)
    onSubmitted()
    if (!args.wait) {
      await printed
      const { organization, run, how } = submitted
      await stdout.result(args.json, { pipeline: name, organization, run, how }, [
        submittedText(name, submitted),
      ])
      return DONE
    }
    log('info', submittedText(name, submitted), { event: 'run.submit', run: submitted.run })
    const summary = await followSubmission(submitted, queue, {
      clock: systemClock,
      stop,
      onNoWorker: () => log('warn', 'no worker is there to take it; start one: spillway worker'),
      onLeft: ({ worker, path, why }) =>
        log('warn', `the worker ${worker} has left it to others: ${path}: ${why}`, { event: 'job.left' }),
    })
    if (summary.error !== null) io.reportError(summary.error)
    if (rows !== null) log('info', `${name} has ended: ${summary.verdict.headline}`)
    await printed
    rows?.push({ name, verdict: summary.verdict, rows: summary.dataSet.rows, lastRun: '', remarks: [] })
    if (rows !== null) return summaryCode(summary, io)
    return await printSummary(summary, pipeline, { json: args.json, again: `submit ${file} --wait` }, io)
  } catch (error) {
    if (!isExportError(error)) throw error
    io.reportError(error)
    await printed
    rows?.push(unreadRow(pipeline?.name ?? file, error))
    if (args.json) {
      await stdout.line(plainJson(notBegunJson(pipeline?.name ?? null, error)))
    }
    return exitCode(error.kind, io.signals.received)
  } finally {
    onSubmitted()
  }
}

function submittedText(name: string, { how, run, organization }: Submission): string {
  return `${name} ${how === 'there' ? 'was submitted already' : 'is submitted'}: organization ${organization}, run ${run}`
}

/** Opens the queue for as long as `use` takes. @throws ExportError `config`, `credentials`, `target` */
export async function withQueue<T>(
  { env, log, wait }: Pick<Io, 'env' | 'log'> & { readonly wait?: AbortSignal },
  use: (queue: Queue) => Promise<T>,
): Promise<T> {
  const queue = await openQueue(await readSecret(QUEUE_VARIABLE, env), {
    clock: systemClock,
    password: await readSecret('SPILLWAY_QUEUE_PASSWORD', env),
    warn: (message) => log('warn', message, { event: 'wait', for: 'queue' }),
    wait,
  })
  try {
    return await use(queue)
  } finally {
    await queue.close()
  }
}
