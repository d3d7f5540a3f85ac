import { ExportError, inSnakeCase, type Pipeline, shellWord, systemClock } from '../../core/index.ts'
import { type DataSet, type LoadOptions, type LoadSummary, loadWarehouse } from '../../data-set/index.ts'
import type { Settings } from '../../run-options.ts'
import {
  LOAD_MODES,
  parseTarget,
  requireTarget,
  type Target,
  type TargetWait,
} from '../../warehouse/index.ts'
import { choiceOf, flag, type Io, requiredValue, stringValue } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { isWithin } from '../results/save-file.ts'
import { verdictLines } from '../results/verdict.ts'
import { untilStopped } from '../terminal/signals.ts'
import { count, counted, duration, plainLine, shownPath } from '../terminal/text.ts'

export const load = dataSetCommand('read', {
  flags: {
    to: requiredValue(
      'duckdb:<file> or postgres://user@host:port/database (password: PGPASSWORD, ~/.pgpass)',
    ),
    schema: stringValue('Schema of the tables; created if missing'),
    table: stringValue('Name of the table: credentials or reports, if not given'),
    mode: choiceOf(LOAD_MODES, 'append', `Rows that exist already: ${LOAD_MODES.join(', ')}`),
    evolve: flag('Add columns that the table lacks'),
    supersede: stringValue('Take the place of this data set, by its id: in one transaction its rows go'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 load pipeline.yaml --to duckdb:leaks.db', 'Into a file'],
    ['$0 load pipeline.yaml --to postgres://etl@db.example.com/leaks --mode upsert', 'Into PostgreSQL'],
  ],
  async run(args, io, dataSet) {
    const target = parseTarget(args.to, io.cwd)
    await requireOutside(target, dataSet.pipeline.load)
    const { schema, table, mode, evolve, supersede, json } = args
    return untilStopped(io, ({ stop }) =>
      loadTables(dataSet, target, { schema, table, mode, evolve, supersede, json }, stop, io),
    )
  },
})

type LoadSettings = Settings<Pick<LoadOptions, 'schema' | 'table' | 'mode' | 'evolve' | 'supersede'>> & {
  readonly json: boolean
}

/** Checks a target before anything is exported. @throws ExportError as the load would */
export async function requireUsable(
  target: Target,
  pipelines: readonly Pipeline[],
  stop: AbortSignal,
): Promise<void> {
  for (const { load } of pipelines) await requireOutside(target, load)
  await requireTarget(target, stop)
}

/** @throws ExportError `config` when it would lie among the files of the data set */
async function requireOutside(target: Target, { location }: Pipeline['load']): Promise<void> {
  if (target.kind !== 'duckdb') return
  if (location.kind === 'disk' && (await isWithin(target.file, location.root))) {
    throw new ExportError({
      kind: 'config',
      what: 'The DuckDB file would lie in the folder of the data set',
      where: target.file,
      next: 'Choose another folder.',
    })
  }
}

export async function loadTables(
  dataSet: DataSet,
  target: Target,
  { json, schema = null, table = null, mode = 'append', evolve = false, supersede = null }: LoadSettings,
  stop: AbortSignal,
  { screen, stdout, program, cwd }: Io,
): Promise<void> {
  const options = {
    ...{ clock: systemClock, stop, schema, table, mode, evolve, supersede },
    onWait: (wait: TargetWait) => screen.write(`${waitText(wait, plainLine(target.label))}\n`),
    onShard: (path: string, number: number, of: number) => {
      screen.isAt(`shard ${count(number)} of ${count(of)}: ${plainLine(path)}`)
    },
  }
  // DuckDB makes its files with the permissions of the umask.
  const umask = process.umask(0o077)
  const summary = await loadWarehouse(dataSet, target, options).finally(() => {
    process.umask(umask)
    screen.clear()
  })
  const verdict = await dataSet.verdict()
  const { others, ...figures } = summary
  const { complete } = verdict
  const flags = { to: target.label, schema, table }
  const words = [
    shownPath(dataSet.pipeline.load.path, cwd),
    ...Object.entries(flags).flatMap(([name, value]) => (value === null ? [] : [`--${name}`, value])),
  ].map((word) => shellWord(plainLine(word)))
  const otherDataSets = others.map(({ id }) => id)
  await stdout.result(json, inSnakeCase<unknown>({ ...figures, otherDataSets, complete }), [
    summaryText(summary),
    ...(others.length === 0 ? [] : [othersText(others, `${program} load ${words.join(' ')}`)]),
    ...verdictLines(verdict, stdout.style),
  ])
}

function waitText({ holder, limitMs }: TargetWait, target: string): string {
  const who = holder === null ? `Another load is using ${target}` : `${plainLine(holder)} has ${target} open`
  const limit = limitMs === null ? '' : `, for ${duration(limitMs)} at most`
  return `${who}; waiting for it to end${limit}.`
}

function summaryText(summary: LoadSummary): string {
  const { target, table, shards, removed, rows, replacedTexts, supersededRows, durationMs } = summary
  const { loaded, skipped, replaced } = shards
  const lines = [
    `${plainLine(table)} in ${plainLine(target)}: ${counted(rows, 'row')} loaded in ${duration(durationMs)}`,
    `shards: ${count(loaded)} loaded, ${count(replaced)} replaced, ${count(skipped)} there already${removed === 0 ? '' : `, ${count(removed)} removed with their rows`}`,
  ]
  if (replacedTexts > 0)
    lines.push(
      `${counted(replacedTexts, 'row')} held a NUL, which PostgreSQL does not take: it is U+FFFD there`,
    )
  if (supersededRows > 0) lines.push(`${counted(supersededRows, 'row')} of the superseded data set removed`)
  return lines.join('\n')
}

const MAX_OTHERS = 3

/** @param command the load of this data set */
function othersText(others: LoadSummary['others'], command: string): string {
  const shown = others
    .slice(0, MAX_OTHERS)
    .map(({ id, pipeline, rows }) => `${id} (${plainLine(pipeline)}, ${counted(rows, 'row')})`)
  const more = others.length - shown.length
  const which = others.length === 1 ? 'it' : 'one of them'
  return `The table also holds ${counted(others.length, 'other data set')}: ${shown.join(', ')}${more > 0 ? ` and ${count(more)} more` : ''}. If this one follows ${which}: ${command} --supersede ${others[0]!.id}`
}
