import { type Database, followRun, type Submitted, submitPipeline } from '../../cluster/index.ts'
import { isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { runOptions } from '../../run-options.ts'
import { withDatabase } from '../cluster-database.ts'
import { command } from '../command.ts'
import { DONE, exitCode, FAILED, gravest } from '../exit-code.ts'
import { NO_FLAGS } from '../given-flags.ts'
import type { Io } from '../io.ts'
import { pipelineFrom } from '../pipeline-options.ts'
import { plainJson } from '../plain-text.ts'
import { counted } from '../quantities.ts'
import type { StopSignals } from '../signals.ts'
import { styleFor, wantsColour } from '../style.ts'
import { notBegunJson, summaryJson, summaryText } from '../summary.ts'

export const submit = command({
  options: (yargs) =>
    yargs
      .positional('pipeline', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Pipeline files',
      })
      .options({
        wait: {
          type: 'boolean',
          default: false,
          describe: 'Wait for the end, with the summary and exit codes of `run`',
        },
        json: { type: 'boolean', default: false, describe: 'Print JSON, one object a pipeline' },
        'allow-plaintext': {
          type: 'boolean',
          default: false,
          describe: 'Consent to transform.secret: plaintext for this run',
        },
      })
      .example('$0 submit acme.yaml', 'For workers to take')
      .example('$0 submit tenants/*.yaml --wait --json', 'Many at once, to their end'),
  async run(args, io) {
    const signals = io.signals.listen(() => {})
    try {
      return await withDatabase(io, { tables: true }, async (database) => {
        const ended = await Promise.all(
          args.pipeline.map((file) => submitOne(file, args, { database, signals, io })),
        )
        return gravest(ended)
      })
    } finally {
      signals.release()
    }
  },
})

type Args = { readonly wait: boolean; readonly json: boolean; readonly allowPlaintext: boolean }
type Desk = { readonly database: Database; readonly signals: StopSignals; readonly io: Io }

/** @returns the exit code */
async function submitOne(file: string, args: Args, { database, signals, io }: Desk): Promise<number> {
  const { stdout, cwd, env, program } = io
  const { stop, abort } = signals
  let pipeline: Pipeline | null = null
  try {
    // The token may be with the workers alone.
    pipeline = await pipelineFrom(file, {}, io)
    const { name } = pipeline
    const log: Io['log'] = (level, message, fields) => io.log(level, message, { pipeline: name, ...fields })
    const observer = { log, progress: () => {} }
    const { allowPlaintext } = args
    const options = await runOptions(pipeline, { env, stop, abort, observer, allowPlaintext })
    const submitted = await submitPipeline(pipeline, database, options)
    if (!args.wait) {
      await stdout.line(
        args.json ? plainJson({ pipeline: name, ...submitted }) : submittedText(name, submitted),
      )
      return DONE
    }
    log('info', submittedText(name, submitted), { event: 'run.submit', run: submitted.run })
    let told = -1
    let isAlone = false
    const summary = await followRun(submitted.run, database, {
      clock: systemClock,
      stop,
      onProgress({ chains, done, failed, requests, workers }) {
        if (workers === 0 && !isAlone)
          log('warn', 'no worker is there to take it; start one: spillway worker')
        isAlone = workers === 0
        const percent = chains === 0 ? 100 : Math.floor(((done + failed) / chains) * 10)
        if (percent === told) return
        told = percent
        log('info', 'chains', { event: 'progress', chains, done, failed, requests })
      },
    })
    if (summary.error !== null) io.reportError(summary.error)
    const style = styleFor(wantsColour(stdout.terminal, env))
    const again = `submit ${file} --wait`
    await stdout.line(
      args.json
        ? plainJson(summaryJson(summary))
        : summaryText(summary, pipeline, { cwd, program, again, flags: NO_FLAGS, style }),
    )
    if (summary.status === 'complete') return DONE
    return summary.error === null ? FAILED : exitCode(summary.error.kind, io.signals.received)
  } catch (error) {
    if (!isExportError(error)) throw error
    io.reportError(error)
    if (args.json) await stdout.line(plainJson(notBegunJson(pipeline?.name ?? null, error)))
    return exitCode(error.kind, io.signals.received)
  }
}

function submittedText(name: string, { how, run, chains, organization }: Submitted): string {
  const what = { begun: 'submitted', resumed: 'goes on where it stopped', there: 'is at work already' }[how]
  return `${name} ${what}: ${counted(chains, 'chain')}, organization ${organization}, run ${run}`
}
