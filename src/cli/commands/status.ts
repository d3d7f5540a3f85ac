import { readNamingKey } from '../../config/index.ts'
import type { Pipeline } from '../../core/index.ts'
import { type PartitionStatus, readStatus, type StatusReport } from '../../run/index.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import type { Output } from '../output.ts'
import { pipelineFrom, pipelineOptions } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { bytes, count, counted } from '../quantities.ts'
import { type Style, styleFor, wantsColour } from '../style.ts'

// More lines than a screen or two are for --json.
const MAX_SHOWN = 50
const MAX_RETIRED = 5
const MAX_CURSOR = 16
const CHUNK_LENGTH = 64 * 1024
const MAX_ERROR = 160

export const status = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({ json: { type: 'boolean', default: false, describe: 'Print every partition as JSON' } })
      .example('$0 status pipeline.yaml', 'What is not done yet')
      .example('$0 status pipeline.yaml --json', 'All of it, whole cursors among it'),
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const report = await readStatus(pipeline, Date.now(), await readNamingKey(pipeline, io))
    const style = styleFor(wantsColour(io.stdout.terminal, io.env))
    if (args.json) await printJson(report, pipeline, io.stdout)
    else await io.stdout.line(statusText(report, pipeline, style))
    return DONE
  },
})

/** A partition a line, some at a time: a million of them are never in memory at once. */
async function printJson(report: StatusReport, pipeline: Pipeline, stdout: Output): Promise<void> {
  const { openShards, ...totals } = report.totals
  let text = `{"pipeline":${plainJson(pipeline.name)},"partitions":[`
  let separator = '\n'
  for (const partition of report.partitions()) {
    text += separator + plainJson(partition)
    separator = ',\n'
    if (text.length < CHUNK_LENGTH) continue
    await stdout.write(text)
    if (stdout.closed) return
    text = ''
  }
  await stdout.line(
    `${text}],\n"retired":${plainJson(report.retired)},\n"totals":${plainJson({ ...totals, open_shards: openShards })}}`,
  )
}

function statusText(report: StatusReport, { name }: Pipeline, style: Style): string {
  const { totals } = report
  const left = totals.partitions - totals.done
  const shown = notDone(report, MAX_SHOWN)
  const lines = [
    `${style('bold', name)}: ${count(totals.done)} of ${count(totals.partitions)} partitions done${others(totals)}`,
    `${count(totals.rows)} rows, ${count(totals.requests)} requests, ${count(totals.quarantined)} quarantined${totals.repeated === 0 ? '' : `, ${count(totals.repeated)} repeated`}`,
    `${count(totals.shards)} shards (${bytes(totals.bytes)}), ${count(totals.openShards)} open`,
  ]
  lines.push(...retiredLines(report.retired))
  if (shown.length === 0) return lines.join('\n')
  lines.push('', ...table(shown, style))
  if (left > shown.length)
    lines.push(`… and ${count(left - shown.length)} more that are not done; --json lists all`)
  return lines.join('\n')
}

function retiredLines(retired: StatusReport['retired']): string[] {
  if (retired.length === 0) return []
  const shown = retired.slice(0, MAX_RETIRED).map(({ query, rows }) => `${query} (${counted(rows, 'row')})`)
  const more = retired.length - shown.length
  return [
    `no longer asked for, kept: ${shown.join(', ')}${more > 0 ? ` and ${count(more)} more; --json lists all` : ''}`,
  ]
}

function others({ failed, partial, pending, pruned }: StatusReport['totals']): string {
  const parts = Object.entries({ failed, partial, pending, pruned }).filter(([, number]) => number > 0)
  return parts.map(([state, number]) => `, ${count(number)} ${state}`).join('')
}

function notDone(report: StatusReport, limit: number): readonly PartitionStatus[] {
  const found: PartitionStatus[] = []
  if (report.totals.done === report.totals.partitions) return found
  for (const partition of report.partitions()) {
    if (partition.state === 'done' || partition.state === 'pruned') continue
    found.push(partition)
    if (found.length === limit) break
  }
  return found
}

function table(partitions: readonly PartitionStatus[], style: Style): string[] {
  const width = Math.max(...partitions.map(({ key }) => key.length), 'partition'.length)
  const row = (key: string, state: string, rows: string, requests: string, next: string): string =>
    `${key.padEnd(width)}  ${state.padEnd(7)}  ${rows.padStart(12)}  ${requests.padStart(8)}  ${next}`.trimEnd()
  return [
    style('dim', row('partition', 'state', 'rows', 'requests', 'next')),
    ...partitions.flatMap(({ key, state, rows, requests, next, error }) => [
      row(key, state, count(rows), count(requests), next === null ? '' : short(next, MAX_CURSOR)),
      ...(error === null ? [] : [style('red', `  ${short(error, MAX_ERROR)}`)]),
    ]),
  ]
}

function short(text: string, length: number): string {
  const line = plainLine(text)
  return line.length > length ? `${line.slice(0, length)}…` : line
}
