import { inSnakeCase, type Pipeline } from '../../core/index.ts'
import { type PartitionFilter, readStatus, type StatusResult } from '../../data-set/index.ts'
import { command, flag } from '../command-line/command.ts'
import { CHOICE, DATA_SET, dataSetFrom, OUTPUT, wantedPartitions } from '../command-line/pipeline-options.ts'
import { type Shown, statusTable } from '../results/status-tables.ts'
import { DONE } from '../terminal/exit-code.ts'
import { bytes, count, counted, plainJson, plainLine } from '../terminal/text.ts'

const MAX_RETIRED = 5

export const status = command({
  positionals: { pipeline: DATA_SET },
  flags: { output: OUTPUT, ...CHOICE, json: flag('Print every partition as JSON') },
  examples: [
    ['$0 status pipeline.yaml', 'The state of each query'],
    ['$0 status pipeline.yaml --all --state failed', 'Which partitions failed, and why'],
    ['$0 status pipeline.yaml --json', 'Everything, with complete cursors'],
  ],
  async run(args, io) {
    const { pipeline } = await dataSetFrom(args, io, 'status')
    const result = await readStatus(pipeline, Date.now())
    const wanted = await wantedPartitions(args)
    if (args.json) await io.stdout.parts(jsonParts(result, pipeline.name, wanted))
    else {
      const { columns, style } = io.stdout
      const shown = { all: args.all, wanted, columns, style }
      await io.stdout.lines(statusLines(result, pipeline, shown))
    }
    return DONE
  },
})

/** A partition a line. */
function* jsonParts(result: StatusResult, name: string, wanted: PartitionFilter | null): Generator<string> {
  const { searchesRemaining, service } = result
  const totals = inSnakeCase({ ...result.totals, searchesRemaining })
  yield `{"pipeline":${plainJson(name)},"partitions":[`
  let separator = '\n'
  for (const partition of result.partitions()) {
    if (wanted !== null && !wanted(partition.query, partition.state)) continue
    yield separator + plainJson(partition)
    separator = ',\n'
  }
  yield `],\n"retired":${plainJson(result.retired)},\n"totals":${plainJson(totals)},\n"service":${plainJson(inSnakeCase({ ...service }))}}\n`
}

function* statusLines(result: StatusResult, { name, load }: Pipeline, shown: Shown): Generator<string> {
  const { totals } = result
  const { repeated } = totals
  yield `${shown.style('bold', name)}: ${count(totals.done)} of ${counted(totals.partitions, 'partition')} done${others(totals)}`
  // The path may be another one where the command is called from elsewhere.
  if (totals.requests === 0 && totals.shards === 0) yield `nothing is exported yet in ${plainLine(load.path)}`
  yield `${counted(totals.rows, 'row')}, ${counted(totals.requests, 'request')}, ${count(totals.quarantined)} quarantined${repeated === 0 ? '' : `, ${count(repeated)} repeated`}`
  yield `${counted(totals.shards, 'shard')} (${bytes(totals.bytes)}), ${count(totals.openShards)} open`
  if (result.smallShards !== null) yield result.smallShards
  yield* serviceLines(result)
  yield* retiredLines(result.retired)
  yield* statusTable(
    {
      partitions: () => result.partitions(),
      queries: (wanted) => result.queries(wanted),
      more: [
        { title: 'rows', value: ({ rows }) => rows },
        { title: 'requests', value: ({ requests }) => requests, isOptional: true },
      ],
    },
    shown,
  )
}

function* serviceLines({ totals, service, searchesRemaining }: StatusResult): Generator<string> {
  const { pageSize, searchesPerRequest, searchesPer1000Rows } = service
  if (totals.searchesSpent !== null) {
    const rates = [
      ...(searchesPerRequest === null ? [] : [`${searchesPerRequest} a full page`]),
      ...(searchesPer1000Rows === null ? [] : [`${searchesPer1000Rows} for 1,000 rows`]),
    ]
    const spent = `${counted(totals.searchesSpent, 'search', 'searches')} of the quota spent`
    yield `${[spent, ...rates].join(', ')}${searchesRemaining === null ? '' : `; ${count(searchesRemaining)} left`}`
  }
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
