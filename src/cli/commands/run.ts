import { randomUUID } from 'node:crypto'
import {
  type ExportError,
  isExportError,
  nullIf,
  type Pipeline,
  shellWord,
  systemClock,
} from '../../core/index.ts'
import { DataSet, recordFailedStart, requireTable } from '../../data-set/index.ts'
import { readPlace } from '../../pipeline/index.ts'
import type { Verdict } from '../../state/index.ts'
import { parseTarget, type Target } from '../../warehouse/index.ts'
import {
  command,
  flag,
  grouped,
  HOW_IT_RUNS,
  type Io,
  stringValue,
  stringValues,
} from '../command-line/command.ts'
import {
  FILES,
  type OverrideFlags,
  pipelineFrom,
  RUN_OVERRIDES,
  requireToRun,
} from '../command-line/pipeline-options.ts'
import { type ExportSettings, exportPipeline } from '../export-pipeline.ts'
import { MetricsFile } from '../log/metrics-file.ts'
import { notBegunJson } from '../results/summary.ts'
import { DONE, exitCode, gravest } from '../terminal/exit-code.ts'
import { requireYes } from '../terminal/prompts.ts'
import { type StopSignals, untilStopped } from '../terminal/signals.ts'
import { plainJson, plainLine, shownPath } from '../terminal/text.ts'
import { loadTables, requireUsable } from './load.ts'

const RUNNING = grouped(HOW_IT_RUNS, {
  'fail-fast': flag('Stop at the first partition that fails'),
  redo: stringValues('Export this partition anew, or those that a glob matches; repeatable'),
  load: stringValue('Then load the shards, as `load --to` does: duckdb:<file> or postgres://…'),
  evolve: flag('Add columns that the table lacks', { needs: ['load'] }),
  supersede: stringValue('Take the place of this data set in the table, by its id', { needs: ['load'] }),
  fresh: flag('Delete the earlier export and start over; asks first', {
    excludes: ['redo', 'from', 'until', 'domain'],
  }),
  yes: flag('Do not ask'),
  json: flag('Print the summary as JSON, one object a line'),
  'no-progress': flag('No progress lines'),
  'metrics-file': stringValue('Figures for Prometheus, written anew every half minute and at the end'),
})

export const run = command({
  positionals: { pipeline: { ...FILES, describe: 'Pipeline files, run one after the other' } },
  flags: { ...RUN_OVERRIDES, ...RUNNING },
  examples: [
    ['$0 run pipeline.yaml', 'Export, or resume'],
    ['$0 run pipeline.yaml --domain example.com --from 2024-01-01', 'A part of it'],
    ["$0 run pipeline.yaml --redo 'domain.example.com/*'", 'All windows of one query anew'],
    ['$0 run a.yaml b.yaml --json 2>run.log', 'For scripts'],
  ],
  async run(args, io) {
    const target = args.load === undefined ? null : parseTarget(args.load, io.cwd, '--load')
    return untilStopped(io, async (signals) => {
      const found = await readEach(args, io)
      const pipelines = found.flatMap(({ pipeline }) => (isExportError(pipeline) ? [] : [pipeline]))
      if (target !== null) {
        await requireUsable(target, pipelines, signals.stop).catch(async (error: unknown) => {
          if (isExportError(error)) for (const pipeline of pipelines) await leaveRecord(pipeline, error)
          throw error
        })
      }
      if (args.fresh && !args.yes && pipelines.length > 0) await askToStartOver(pipelines, io)
      const metrics = await MetricsFile.open(args.metricsFile, pipelines, io)
      const isNarrowed = [args.from, args.until, args.domain].some((flag) => flag !== undefined)
      const code = await runEach(found, { ...args, isNarrowed, metrics, target }, signals, io)
      await metrics?.close()
      return code
    })
  },
})

type Found = {
  readonly file: string
  /** null: its file cannot be read, or is invalid. */
  readonly name: string | null
  /** The pipeline, or why it cannot run, which was printed. */
  readonly pipeline: Pipeline | ExportError
  /** Where its data set is; null: that cannot be read either. */
  readonly place: Pipeline | null
}

/** Reads all pipeline files before the first run, so that all errors in them are printed at once. */
async function readEach(
  args: OverrideFlags & { readonly pipeline: readonly string[]; readonly allowPlaintext: boolean },
  io: Io,
): Promise<readonly Found[]> {
  const found: Found[] = []
  for (const file of args.pipeline) {
    let place: Pipeline | null = null
    try {
      place = await pipelineFrom(file, args, io)
      await requireToRun(place, args, io)
      found.push({ file, name: place.name, pipeline: place, place })
    } catch (error) {
      if (!isExportError(error)) throw error
      io.reportError(error)
      const name = place?.name ?? null
      place ??= await placeOf(file, args, io)
      if (place !== null) await leaveRecord(place, error)
      found.push({ file, name, pipeline: error, place })
    }
  }
  return found
}

/** With the queries and windows of the data set, where the file does not tell them. */
async function placeOf(file: string, { output }: OverrideFlags, { env, cwd }: Io): Promise<Pipeline | null> {
  const place = await readPlace(file, { env, cwd, overrides: { output } }).catch(nullIf())
  const found = place && (await DataSet.open({ ...place, maskKey: null }, 'status').catch(nullIf()))
  return found?.planned ?? place?.pipeline ?? null
}

async function leaveRecord(pipeline: Pipeline, error: ExportError): Promise<void> {
  await recordFailedStart(pipeline, error, systemClock.now())
}

async function verdictIn(place: Pipeline): Promise<Verdict> {
  return (await DataSet.of(place, 'status')).verdict()
}

async function askToStartOver(pipelines: readonly Pipeline[], { cwd, screen }: Io): Promise<void> {
  const paths = pipelines.map(({ load }) => shownPath(load.path, cwd)).join(', ')
  await requireYes(screen, {
    what: '--fresh deletes what was exported before',
    where: paths,
    question: `Delete everything that was exported to ${paths}, and start over?`,
    next: 'Run it without --fresh to resume.',
  })
}

async function runEach(
  found: readonly Found[],
  settings: RunSettings,
  signals: StopSignals,
  io: Io,
): Promise<number> {
  const codes: number[] = []
  const paths = new Set<string>()
  for (const { file, name, pipeline, place } of found) {
    let verdict: Verdict | null = null
    const notBegun = async (error: ExportError): Promise<number> => {
      verdict = place === null ? null : await verdictIn(place).catch(nullIf())
      if (settings.json) await io.stdout.line(plainJson(notBegunJson(name, error, verdict)))
      return exitCode(error.kind, io.signals.received)
    }
    let code: number
    if (signals.stop.aborted) code = await notBegun(signals.stop.reason)
    else if (isExportError(pipeline)) code = await notBegun(pipeline)
    else {
      const { path } = pipeline.load
      // A run by the same id would go on with the one before.
      const ownIo = paths.has(path) ? { ...io, run: randomUUID() } : io
      paths.add(path)
      code = await runOne(pipeline, settings, signals, ownIo).catch((error: unknown) => {
        if (!isExportError(error)) throw error
        io.reportError(error)
        return notBegun(error)
      })
    }
    codes.push(code)
    settings.metrics?.exit(name ?? file, code, verdict)
  }
  return gravest(codes)
}

type RunSettings = ExportSettings & {
  /** Where shards are loaded when the run has ended, also if it is not complete; null: nowhere. */
  readonly target: Target | null
  readonly evolve: boolean
  readonly supersede?: string | undefined
}

/** @returns the exit code @throws ExportError when the run could not begin */
async function runOne(
  pipeline: Pipeline,
  settings: RunSettings,
  signals: StopSignals,
  io: Io,
): Promise<number> {
  const { target, json, output, fresh, evolve, supersede = null } = settings
  if (target !== null) {
    await requireTable(pipeline, target, { isNew: fresh === true, evolve, supersede, stop: signals.stop })
  }
  const code = await exportPipeline(pipeline, settings, signals, io)
  if (target === null || signals.stop.aborted) return code
  try {
    await loadTables(await DataSet.of(pipeline), target, { json, evolve, supersede }, signals.stop, io)
    return code
  } catch (error) {
    if (!isExportError(error)) throw error
    io.reportError(error)
    const flags = `${evolve ? ' --evolve' : ''}${supersede === null ? '' : ` --supersede ${shellWord(supersede)}`}`
    const again = `${io.program} load ${shellWord(output ?? pipeline.file)} --to ${shellWord(target.label)}${flags}`
    const verdict =
      code === DONE
        ? 'The export is complete; only the load is left'
        : 'What is exported is kept; load it with'
    io.screen.write(`${verdict}: ${plainLine(again)}\n`)
    return gravest([code, exitCode(error.kind, io.signals.received)])
  }
}
