import { inSnakeCase, type Pipeline, runCommand, systemClock } from '../../core/index.ts'
import {
  type CatalogComparison,
  type DataSet,
  type PartitionFilter,
  readStatus,
  type StatusResult,
} from '../../data-set/index.ts'
import { type RunStatus, verdictJson } from '../../state/index.ts'
import { flag, forEachFile } from '../command-line/command.ts'
import { CHOICE, dataSetCommand, openedDataSet, wantedPartitions } from '../command-line/pipeline-options.ts'
import { catalogJson, catalogText, comparedCatalog } from '../results/catalog.ts'
import { type FleetRow, fleetTable, unreadRow } from '../results/fleet-table.ts'
import { type Shown, statusTable } from '../results/status-tables.ts'
import { coverLines, headlineText, reasonLines } from '../results/verdict.ts'
import { DONE, NEEDS_SOMEBODY } from '../terminal/exit-code.ts'
import { bytes, count, counted, duration, plainJson, plainLine } from '../terminal/text.ts'

const MAX_RETIRED = 5

export const status = dataSetCommand('status', {
  flags: { ...CHOICE, json: flag('Print every partition as JSON') },
  examples: [
    ['$0 status pipeline.yaml', 'The state of each query'],
    ['$0 status pipeline.yaml --all --state failed', 'Which partitions failed, and why'],
    ['$0 status pipeline.yaml --json', 'Everything, with complete cursors'],
    ['$0 status tenants/*.yaml', 'A line for each of several pipelines'],
  ],
  eachFile: true,
  async table(files, output, io) {
    const rows: FleetRow[] = []
    const code = await forEachFile(
      files,
      io,
      async (file) => {
        const dataSet = await openedDataSet(file, output, io, 'status')
        const result = await readStatus(dataSet, systemClock.now())
        rows.push(fleetRow(dataSet, result, await comparedCatalog(dataSet.pipeline, io)))
        return DONE
      },
      (file, error) => rows.push(unreadRow(file, error)),
    )
    await io.stdout.lines(fleetTable(rows, io.stdout.style))
    return code
  },
  async run(args, io, dataSet) {
    const { pipeline, invalid } = dataSet
    const result = await readStatus(dataSet, systemClock.now())
    const catalog = await comparedCatalog(pipeline, io)
    const wanted = await wantedPartitions(args)
    if (args.json) await io.stdout.parts(jsonParts(result, catalog, pipeline.name, wanted))
    else {
      const { style } = io.stdout
      const shown = { all: args.all, wanted, style }
      if (invalid !== null)
        await io.stdout.line(`${plainLine(pipeline.file)} is invalid: a run with it is refused`)
      await io.stdout.lines(statusLines(result, catalog, pipeline, shown))
    }
  },
})

function fleetRow(
  { pipeline, differences }: DataSet,
  { verdict, totals, runs, holder, overdue }: StatusResult,
  catalog: CatalogComparison | null,
): FleetRow {
  const last = runs.at(-1)
  const end = last?.finished_at ?? null
  const began = last === undefined ? '' : `began ${atTime(last.started_at)}`
  return {
    name: pipeline.name,
    verdict,
    rows: totals.rows,
    lastRun:
      holder?.isLate === false ? `at work since ${atTime(holder.since)}` : end === null ? began : atTime(end),
    remarks: [
      ...overdue,
      ...(catalog === null || catalog.inLine === true ? [] : [catalogText(catalog)]),
      ...(differences.length === 0 ? [] : [`the file and the data set differ: ${differences.join('; ')}`]),
    ],
  }
}

function* jsonParts(
  { runs, verdict, holder, overdue, retired, ...result }: StatusResult,
  catalog: CatalogComparison | null,
  name: string,
  wanted: PartitionFilter | null,
): Generator<string> {
  yield `{"pipeline":${plainJson(name)},"partitions":[`
  let separator = '\n'
  for (const partition of result.each()) {
    if (wanted !== null && !wanted(partition.query, partition.state)) continue
    yield separator + plainJson(partition)
    separator = ',\n'
  }
  const { searchesRemaining, searchesThisMonth, service } = result
  const lastRun = runs.at(-1)
  const { covers, waiting, outside } = verdict
  const rest = {
    verdict: verdictJson(verdict),
    covers,
    waiting,
    last_run: lastRun === undefined ? null : runJson(lastRun),
    holder: holder && inSnakeCase<unknown>({ ...holder }),
    overdue,
    retired,
    totals: { ...inSnakeCase({ ...result.totals, searchesRemaining, searchesThisMonth }), outside },
    service: inSnakeCase({ ...service }),
    ...(catalog === null ? {} : { catalog: catalogJson(catalog) }),
  }
  yield `],\n${plainJson(rest).slice(1)}\n`
}

function runJson({ started_at, finished_at, status, error, by }: StatusResult['runs'][number]) {
  return { started_at, finished_at, status, error, by }
}

function* statusLines(
  result: StatusResult,
  catalog: CatalogComparison | null,
  pipeline: Pipeline,
  shown: Shown,
): Generator<string> {
  const { name, load } = pipeline
  const { totals, verdict } = result
  const { repeated } = totals
  yield `${shown.style('bold', name)}: ${headlineText(verdict, shown.style)}`
  yield* reasonLines(verdict)
  yield* coverLines(verdict)
  yield `${count(totals.done)} of ${counted(totals.partitions, 'partition')} done${others(totals)}`
  yield* lastRunLines(result, pipeline)
  // The path may be another one where the command is called from elsewhere.
  if (totals.requests === 0 && totals.shards === 0) yield `nothing is exported yet in ${plainLine(load.path)}`
  yield `${counted(totals.rows, 'row')}, ${counted(totals.requests, 'request')}, ${count(totals.quarantined)} quarantined${repeated === 0 ? '' : `, ${count(repeated)} repeated`}`
  yield `${counted(totals.shards, 'shard')} (${bytes(totals.bytes)}), ${count(totals.openShards)} open`
  if (catalog !== null) yield catalogText(catalog)
  yield* serviceLines(result, pipeline)
  yield* retiredLines(result.retired)
  for (const sentence of result.overdue) yield `to do: ${plainLine(sentence)}`
  yield* statusTable(result.each, result.queries, ['rows', 'requests'], shown)
}

function* lastRunLines(
  { runs, holder, totals, verdict }: StatusResult,
  pipeline: Pipeline,
): Generator<string> {
  const run = plainLine(runCommand(pipeline))
  if (holder !== null) {
    const { pid, host, since, heartbeatAt, isLate } = holder
    const who = `process ${pid} on host ${plainLine(host)}, since ${atTime(since)}`
    const age = duration(Math.max(0, systemClock.now() - Date.parse(heartbeatAt)))
    if (!isLate) return yield `at work: ${who}, last heartbeat ${age} ago`
    yield `held by ${who}, last heartbeat ${age} ago: it has probably ended, and the next run takes over`
  }
  const last = runs.at(-1)
  if (last !== undefined) {
    const { status, finished_at, started_at } = last
    const isMore = totals.done < totals.partitions
    yield finished_at === null || status === null
      ? `last run: began ${atTime(started_at)}, its end is not on record`
      : `last run: ${endText(status, isMore)}, ${atTime(finished_at)}`
  }
  const kind = last?.error?.kind
  if (kind !== undefined && NEEDS_SOMEBODY.has(kind)) yield `once corrected: ${run}`
  else if (totals.done < totals.partitions || verdict.state !== 'complete') yield `next: ${run}`
}

/** @param isMore whether partitions of the file are not done: then a complete run was one of a part of them */
function endText(status: RunStatus, isMore: boolean): string {
  if (status === 'budget') return 'stopped at the budget or the quota'
  return status === 'complete' && isMore ? 'complete for what it was called for' : status
}

/** `2026-11-28T02:15:07.123Z` → `2026-11-28 02:15 UTC` */
function atTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
}

function* serviceLines(
  { totals, service, searchesRemaining, searchesThisMonth }: StatusResult,
  { extract }: Pipeline,
): Generator<string> {
  const { pageSize } = service
  if (totals.searchesSpent !== null) {
    const left = searchesRemaining === null ? '' : `; ${count(searchesRemaining)} left`
    yield `${counted(totals.searchesSpent, 'search', 'searches')} of the quota spent${left}`
  }
  if (extract.monthlySearches !== null)
    yield `this month: ${count(searchesThisMonth)} of ${counted(extract.monthlySearches, 'search', 'searches')}`
  if (pageSize !== null) yield `pages of ${counted(pageSize, 'row')}`
}

function retiredLines(retired: StatusResult['retired']): string[] {
  if (retired.length === 0) return []
  const shown = retired.slice(0, MAX_RETIRED).map(({ query, rows }) => `${query} (${counted(rows, 'row')})`)
  const more = retired.length - shown.length
  return [`retired, kept: ${shown.join(', ')}${more > 0 ? ` and ${count(more)} more; --json lists all` : ''}`]
}

function others({ failed, partial, pending, pruned, redo }: StatusResult['totals']): string {
  const parts = Object.entries({ failed, partial, pending, pruned }).filter(([, number]) => number > 0)
  const again = redo === 0 ? '' : `; ${count(redo)} to be exported again, the former rows stay until then`
  return `${parts.map(([state, number]) => `, ${count(number)} ${state}`).join('')}${again}`
}
