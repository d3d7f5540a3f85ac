import { inSnakeCase, type Pipeline } from '../../core/index.ts'
import { type PlanResult, readPlan, requestRate } from '../../data-set/index.ts'
import { readMaskKey } from '../../pipeline/index.ts'
import { changeOptions } from '../../run-options.ts'
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
import { coverLines, headlineText, reasonLines } from '../results/verdict.ts'
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
  eachFile: true,
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io, true)
    await requireToRun(pipeline, args, io, true)
    const { env } = io
    const maskKey = await readMaskKey(pipeline, env)
    const { allowPlaintext } = args
    const result = await readPlan(pipeline, { ...changeOptions({ env }), maskKey, allowPlaintext })
    const { style } = io.stdout
    const shown = { all: args.all, wanted: await wantedPartitions(args), style }
    await io.stdout.result(args.json, planJson(result), planLines(result, pipeline, shown))
  },
})

function planJson({ partitions, minRequests, minSeconds, lacking, ...result }: PlanResult) {
  const { expectedRequests, expectedSeconds, expectedSearches } = result
  return inSnakeCase<unknown>({
    ...{ partitions, minRequests, minSeconds, expectedRequests, expectedSeconds, expectedSearches },
    lackingColumns: lacking?.partitions ?? 0,
    lacking,
  })
}

function* planLines(result: PlanResult, pipeline: Pipeline, shown: Shown): Generator<string> {
  const { total, done, partial, pending, pruned } = result.partitions
  const { minRequests, minSeconds, expectedRequests, expectedSeconds, pageSize } = result
  const name = shown.style('bold', pipeline.name)
  yield `${name}: ${counted(total, 'partition')}: ${count(done)} done, ${count(partial)} partial, ${count(pending)} pending${pruned === 0 ? '' : `; ${count(pruned)} pruned`}`
  const { verdict } = result
  if (verdict.state === 'stopped' || verdict.state === 'damaged') {
    yield headlineText(verdict, shown.style)
    yield* reasonLines(verdict)
  }
  yield* coverLines({ ...verdict, covers: null })
  if (minRequests === 0) yield 'Nothing to do.'
  else {
    const rate = requestRate(pipeline)
    yield `at least ${counted(minRequests, 'request')}, ${duration(minSeconds * 1000)} at ${rate} a second; further pages of ${count(pageSize)} items, smaller pages and retries need more`
    if (expectedRequests !== null && expectedSeconds !== null)
      yield `by the export so far about ${counted(expectedRequests, 'request')} with pages of ${counted(pageSize, 'row')}, ${duration(expectedSeconds * 1000)}`
    if (result.isBoundByChains)
      yield 'responses are slower than the rate limit: extract.windows.per_chain lets several requests of a query run at a time'
    yield* searchLines(result, pipeline)
  }
  if (result.lacking !== null) {
    const { columns, partitions, rows, requests, searches } = result.lacking
    const price = result.searchesAPage === null ? '' : `, ${counted(searches, 'search', 'searches')}`
    yield `${counted(partitions, 'partition')} (${counted(rows, 'row')}) ${partitions === 1 ? 'is' : 'are'} exported without ${columns.join(', ')}: \`run --redo\` of them is about ${counted(requests, 'request')}${price}`
  }
  // `status` shows what is done.
  if (!shown.all && minRequests === 0 && shown.wanted === null) return
  yield* statusTable(result.each, result.queries, [], shown)
}

/** The cost in searches, the service's unit of quota, and what there is to pay it with. */
function* searchLines(
  { expectedRequests, minRequests, expectedSearches, searchesAPage, ...result }: PlanResult,
  { extract: { maxRequests, monthlySearches } }: Pipeline,
): Generator<string> {
  if (searchesAPage !== null)
    yield expectedSearches === null
      ? `a page of ${counted(result.pageSize, 'row')} costs ${counted(searchesAPage, 'search', 'searches')} of the quota`
      : `about ${counted(expectedSearches, 'search', 'searches')} of the quota`
  if (maxRequests !== null) {
    const runs = Math.ceil((expectedRequests ?? minRequests) / maxRequests)
    const least = expectedRequests === null ? 'at least' : 'about'
    yield `budget of one run: ${counted(maxRequests, 'request')}${runs > 1 ? `, so ${least} ${count(runs)} runs` : ''}`
  }
  if (monthlySearches !== null)
    yield `share of a month: ${counted(monthlySearches, 'search', 'searches')}, ${count(result.searchesThisMonth)} of them spent`
  if (searchesAPage !== null && result.searchesRemaining !== null)
    yield `searches left when the service last said so: ${count(result.searchesRemaining)}`
}
