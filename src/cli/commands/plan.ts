import { inSnakeCase, type Month, monthOf, type Pipeline, rulesOf } from '../../core/index.ts'
import { readPlan } from '../../library.ts'
import { monthsNeeded, type PlanResult, requestRate, searchesToSpend } from '../../run/index.ts'
import { command, flag } from '../command-line/command.ts'
import {
  CHOICE,
  FILE,
  pipelineFrom,
  RUN_OVERRIDES,
  requireToRun,
  wantedPartitions,
} from '../command-line/pipeline-options.ts'
import { type Shown, statusTable } from '../results/status-tables.ts'
import { count, counted, duration } from '../terminal/text.ts'

export const plan = command({
  positionals: { pipeline: FILE },
  flags: {
    ...RUN_OVERRIDES,
    ...CHOICE,
    json: flag('Print it as JSON', { excludes: ['all', 'state', 'query'] }),
  },
  examples: [
    ['$0 plan pipeline.yaml', 'The minimum of requests and time'],
    ['$0 plan pipeline.yaml --from 2020-01-01', 'The same for a longer range'],
  ],
  eachFile: { pauseMs: 0 },
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io, true)
    await requireToRun(pipeline, args, io, true)
    const result = await readPlan(pipeline, { env: io.env, allowPlaintext: args.allowPlaintext })
    const { columns, style } = io.stdout
    const shown = { all: args.all, wanted: await wantedPartitions(args), columns, style }
    await io.stdout.result(args.json, planJson(result), planLines(result, pipeline, shown))
  },
})

function planJson({ months, searchesThisMonth, ...result }: PlanResult) {
  const { partitions, searches, minRequests, minSeconds } = result
  const { expectedRequests, expectedSeconds, expectedSearches } = result
  const expected = { expectedRequests, expectedSeconds, expectedSearches }
  const share = months === null ? {} : { months, searchesThisMonth }
  return inSnakeCase<unknown>({ partitions, minRequests, minSeconds, ...expected, searches, ...share })
}

function* planLines(result: PlanResult, pipeline: Pipeline, shown: Shown): Generator<string> {
  const { total, done, partial, pending, pruned } = result.partitions
  const { minRequests, minSeconds, expectedRequests, expectedSeconds } = result
  const name = shown.style('bold', pipeline.name)
  yield `${name}: ${counted(total, 'partition')}: ${count(done)} done, ${count(partial)} partial, ${count(pending)} pending${pruned === 0 ? '' : `; ${count(pruned)} pruned`}`
  if (minRequests === 0) yield 'Nothing to do.'
  else {
    const { extract } = pipeline
    const rate = requestRate(pipeline)
    yield `at least ${counted(minRequests, 'request')}, ${duration(minSeconds * 1000)} at ${rate} a second; further pages of ${count(result.pageSize)} items, smaller pages and retries need more`
    if (expectedRequests !== null && expectedSeconds !== null) {
      const size = result.pageSize < extract.pageSize ? ` with pages of ${count(result.pageSize)} rows` : ''
      yield `by the export so far about ${counted(expectedRequests, 'request')}${size}, ${duration(expectedSeconds * 1000)}`
    }
    yield* searchLines(result)
    yield* budgetLines(result, pipeline)
    yield* folderLines(result, pipeline)
  }
  yield* tableLines(result, shown)
}

function* tableLines(result: PlanResult, shown: Shown): Generator<string> {
  // `status` shows what is done.
  if (!shown.all && result.minRequests === 0 && shown.wanted === null) return
  yield* statusTable(
    {
      partitions: () => result.each(),
      queries: (wanted) => result.queries(wanted),
      more: [
        { title: 'at least', value: ({ minRequests }) => minRequests },
        { title: 'about', value: ({ expectedRequests }) => expectedRequests ?? 0 },
      ],
    },
    shown,
  )
}

/** The cost in searches, the service's unit of quota, as far as it is known. */
function* searchLines(result: PlanResult): Generator<string> {
  const { expectedSearches, minRequests, pageSize, searchesAPage: page } = result
  const { low, high } = result.searches
  if (page === null) return
  if (expectedSearches !== null) {
    yield `by what pages were measured to cost about ${counted(expectedSearches, 'search', 'searches')} of the quota`
    return
  }
  const price = `a page of ${counted(pageSize, 'row')} costs ${rangeText(page.low, page.high)}`
  const all =
    low !== null && high !== null
      ? `${rangeText(low, high)} of the quota`
      : `at least ${rangeText(minRequests * page.low, minRequests * page.high)} if all are full`
  yield page.low === page.high ? `${price}, ${all}` : `${price}, ${all}; \`check --probe\` measures it`
}

function rangeText(low: number, high: number): string {
  return low === high ? counted(high, 'search', 'searches') : `${count(low)} to ${count(high)} searches`
}

/** The requests compared with the budget of a run, and the searches with the quota that is left. */
function budgetLines(
  result: PlanResult,
  { extract: { maxRequests, monthlySearches, minSearchesRemaining, resource } }: Pipeline,
): string[] {
  const { minRequests, expectedRequests, searchesRemaining, months, searchesThisMonth } = result
  const requests = expectedRequests ?? minRequests
  const least = expectedRequests === null ? 'at least' : 'about'
  const lines: string[] = []
  if (maxRequests !== null) {
    const runs = Math.ceil(requests / maxRequests)
    const several = runs > 1 ? `, so ${least} ${count(runs)} runs` : ''
    lines.push(`budget of one run: ${counted(maxRequests, 'request')}${several}`)
  }
  // Without a measurement, the more expensive reading counts.
  const searches = result.expectedSearches ?? result.searches.high
  const about = searches === null ? 'at least' : result.expectedSearches === null ? 'at most' : 'about'
  if (monthlySearches !== null) {
    const share = `share of a month: ${counted(monthlySearches, 'search', 'searches')}, ${count(searchesThisMonth)} of them spent`
    lines.push(months === null ? share : `${share}; so ${monthsText(result, monthlySearches)}`)
  }
  if (rulesOf(resource).reading !== 'search' || searchesRemaining === null) return lines
  const left = `searches left when the service last said so: ${count(searchesRemaining)}`
  if (searches === null) return [...lines, left]
  const usable = Math.max(0, searchesToSpend({ minSearchesRemaining }, searchesRemaining))
  const share = searchesRemaining === 0 ? 100 : Math.ceil((100 * searches) / searchesRemaining)
  const verdict =
    searches <= usable
      ? `${about} ${share}% of them are needed`
      : `${result.expectedSearches === null ? 'perhaps ' : ''}not enough for all of it before the service counts anew: run again then`
  return [...lines, `${left}; ${verdict}`]
}

/** The months that the searches take, by each reading that is possible. */
function monthsText(
  { expectedSearches, searches, minRequests, searchesAPage: page, searchesThisMonth }: PlanResult,
  share: number,
): string {
  const [few, many] = [
    expectedSearches ?? searches.low ?? minRequests * (page?.low ?? 1),
    expectedSearches ?? searches.high ?? minRequests * (page?.high ?? 1),
  ].map((needed) => monthsNeeded(needed, share, searchesThisMonth)) as [number, number]
  const isLeast = expectedSearches === null && searches.high === null
  const last = monthAfter(monthOf(Date.now()), Math.max(0, many - 1))
  const least = isLeast ? 'at least ' : expectedSearches === null ? '' : 'about '
  const range = few === many ? '' : `${count(few)} to `
  return `${least}${range}${counted(many, 'calendar month')}, the last of them ${last}`
}

/** The month that is this many months later. */
function monthAfter(month: Month, months: number): Month {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return monthOf(Date.UTC(year, number - 1 + months, 1))
}

/** Readers of files with fewer rows spend their time on opening files. */
const FEW_ROWS = 1000
/** Fewer files are no trouble, however small. */
const FEW_FILES = 100

/** Warns of many small folders. */
function folderLines(
  { partitions: { total, done }, rowsPerPartition }: PlanResult,
  { extract, load }: Pipeline,
): string[] {
  if (rowsPerPartition === null || rulesOf(extract.resource).reading !== 'search') return []
  const queries = extract.queries.length
  const windows = total / queries
  const rowsBy = (by: readonly string[]): number =>
    rowsPerPartition * (by.includes('query') ? 1 : queries) * (by.includes('window') ? 1 : windows)
  const { partitionBy } = load
  const files = ((total - done) * rowsPerPartition) / Math.max(1, rowsBy(partitionBy))
  if (rowsBy(partitionBy) >= FEW_ROWS || files < FEW_FILES) return []
  const better = [['window'], ['query'], []].find((by) => rowsBy(by) >= FEW_ROWS) ?? []
  const name = better.length === 0 ? 'none' : better[0]
  return [
    `folders will be many and small: about ${counted(Math.round(rowsBy(partitionBy)), 'row')} a shard; with load.partition_by: ${name} about ${count(Math.round(rowsBy(better)))}`,
  ]
}
