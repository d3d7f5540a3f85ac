import type { Pipeline } from '../../core/index.ts'
import { type PlanReport, readPlan } from '../../run/index.ts'
import { runOptions } from '../../run-options.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { pipelineToRun, runPipelineOptions } from '../pipeline-options.ts'
import { plainJson } from '../plain-text.ts'
import { count, counted, duration } from '../quantities.ts'

export const plan = command({
  options: (yargs) =>
    runPipelineOptions(yargs)
      .options({ json: { type: 'boolean', default: false, describe: 'Print it as JSON' } })
      .example('$0 plan pipeline.yaml', 'Requests and time that are needed at least')
      .example('$0 plan pipeline.yaml --from 2020-01-01', 'The same for a longer range'),
  async run(args, io) {
    const pipeline = await pipelineToRun(args.pipeline, args, io)
    const options = await runOptions(pipeline, { env: io.env, allowPlaintext: args.allowPlaintext })
    const report = await readPlan(pipeline, options)
    await io.stdout.line(args.json ? plainJson(planJson(report)) : planText(report, pipeline))
    return DONE
  },
})

function planJson({ partitions, minRequests, minSeconds }: PlanReport) {
  return { partitions, min_requests: minRequests, min_seconds: minSeconds }
}

function planText({ partitions, minRequests, minSeconds }: PlanReport, pipeline: Pipeline): string {
  const { total, done, partial, pending } = partitions
  const { extract, service } = pipeline
  const rate = extract.resource === 'reports' ? service.basicRequestsPerSecond : service.requestsPerSecond
  const lines = [
    `${pipeline.name}: ${counted(total, 'partition')}: ${count(done)} done, ${count(partial)} partial, ${count(pending)} pending`,
  ]
  if (minRequests === 0) return [...lines, 'Nothing to do.'].join('\n')
  lines.push(
    `at least ${counted(minRequests, 'request')}, ${duration(minSeconds * 1000)} at ${rate} a second; full pages need more`,
  )
  const { maxRequests } = extract
  if (maxRequests !== null) {
    const runs = Math.ceil(minRequests / maxRequests)
    const several = runs > 1 ? `, so at least ${count(runs)} runs` : ''
    lines.push(`budget of one run: ${counted(maxRequests, 'request')}${several}`)
  }
  return lines.join('\n')
}
