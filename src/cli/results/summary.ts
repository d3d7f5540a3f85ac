import { resolve } from 'node:path'
import { type ExportError, inSnakeCase, kindOfRows, type Pipeline, shellWord } from '../../core/index.ts'
import { lackingText } from '../../data-set/index.ts'
import { figuresJson, type RunSummary, reasonOf } from '../../run/index.ts'
import { NO_RUN_COUNTS, partitionCounts, type Verdict, verdictJson } from '../../state/index.ts'
import type { Io } from '../command-line/command.ts'
import { DONE, exitCode, FAILED, NEEDS_SOMEBODY } from '../terminal/exit-code.ts'
import type { Colour, Style } from '../terminal/screen.ts'
import { bytes, count, counted, duration, plainJson, plainLine, shownPath } from '../terminal/text.ts'
import { coverLines, headlineText } from './verdict.ts'

const MAX_CAUSES_SHOWN = 5
const MAX_REASONS_SHOWN = 3

function summaryJson(
  summary: Omit<RunSummary, 'dataSet' | 'lastCompleteMs' | 'verdict'>,
  verdict: Verdict | null,
) {
  const { partitions, filePartitions, service, manifest, error, failures } = summary
  return {
    ...figuresJson(summary),
    partitions,
    ...(filePartitions === null ? {} : { file_partitions: filePartitions }),
    service: inSnakeCase({ ...service }),
    manifest,
    error: reasonOf(error, summary),
    failures,
    verdict: verdict && verdictJson(verdict),
    covers: verdict?.covers ?? null,
  }
}

export async function printSummary(
  summary: RunSummary,
  pipeline: Pipeline,
  how: HowItRan & { readonly json: boolean },
  io: Io,
): Promise<number> {
  const { stdout } = io
  if (how.json) await stdout.line(plainJson(summaryJson(summary, summary.verdict)))
  else {
    await stdout.lines(summaryLines(summary, pipeline, io))
    // Commands stay on one line, to be copied.
    for (const line of nextLines(summary, pipeline, how, io)) await stdout.line(`  ${line}`)
  }
  return summaryCode(summary, io)
}

export function summaryCode({ status, error }: RunSummary, { signals }: Io): number {
  if (status === 'complete') return DONE
  return error === null ? FAILED : exitCode(error.kind, signals.received)
}

/** The same for one of several pipelines that could not begin. @param name null: it could not be read */
export function notBegunJson(name: string | null, error: ExportError, verdict: Verdict | null = null) {
  const status = error.kind === 'interrupted' ? error.kind : NOTHING_DONE.status
  return { ...summaryJson({ ...NOTHING_DONE, status, error }, verdict), pipeline: name }
}

const NOTHING_DONE = {
  pipeline: '',
  status: 'failed' as const,
  ...NO_RUN_COUNTS,
  partitions: partitionCounts(0, { done: 0, failed: 0 }),
  filePartitions: null,
  shards: 0,
  bytes: 0,
  repeated: 0,
  forgotten: 0,
  service: { pageSize: null },
  durationMs: 0,
  manifest: null,
  error: null,
  failures: [],
  causes: [],
}

export type HowItRan = {
  /** The command that resumes the run. Default: `run`. */
  readonly again?: string
  /** `--output`; undefined: the data set is where the file says. */
  readonly output?: string | undefined
  readonly isNarrowed?: boolean
}

function summaryLines(summary: RunSummary, pipeline: Pipeline, { cwd, stdout }: Io): readonly string[] {
  const { style } = stdout
  const { partitions, rows, shards, requests, retries, quarantined } = summary
  const { repeated, forgotten, manifest, searchesSpent, searchesRemaining } = summary
  const { pageSize } = summary.service
  const inAll = summary.dataSet.rows
  const { path } = pipeline.load
  const seconds = summary.durationMs / 1000
  const [covers = null, ...beside] = coverLines(summary.verdict)
  const figures: readonly Figure[] = [
    ['verdict', headlineText(summary.verdict, style)],
    ['', covers],
    ...beside.map((line) => ['', line] as const),
    ['partitions', partitionsText(partitions, style)],
    ['rows', rows === 0 ? '0' : `${count(rows)} (${count(rows / Math.max(seconds, 0.001))} a second)`],
    ['data set', inAll === rows ? null : `${counted(inAll, 'row')} in all, by this run and earlier ones`],
    ['written', `${counted(shards, 'shard')}, ${bytes(summary.bytes)}`],
    ['columns', summary.dataSet.lacking === null ? null : lackingText(summary.dataSet.lacking)],
    ['in shards', openRows(summary.dataSet)],
    [
      'requests',
      `${count(requests)}${retries === 0 ? '' : `, ${counted(retries, 'retry', 'retries')} among them`}`,
    ],
    ['searches spent', searchesSpent === null ? null : count(searchesSpent)],
    ['searches left', searchesRemaining === null ? null : count(searchesRemaining)],
    ['page size', pageSize === null ? null : counted(pageSize, 'row')],
    [
      'quarantined',
      quarantined === 0
        ? null
        : style('yellow', `${counted(quarantined, 'item')}, in ${shownPath(path, cwd)}/_quarantine`),
    ],
    [
      'repeated',
      repeated === 0 ? null : `${counted(repeated, 'item')} that the service repeated, exported once`,
    ],
    ['forgotten', forgotten === 0 ? null : `${counted(forgotten, 'item')} of forgotten people, dropped`],
    ['files in', shownPath(path, cwd)],
    ['manifest', manifest === null ? style('red', 'could not be written') : shownPath(manifest, cwd)],
  ]
  return [
    headline(summary, style),
    '',
    ...figures.flatMap(([name, value]) =>
      value === null ? [] : [`  ${style('dim', name.padEnd(16))}${value}`],
    ),
    ...reasonLines(summary, style),
    ...failureLines(summary, style),
    '',
  ]
}

/** null: it is not shown. */
type Figure = readonly [name: string, value: string | null]

/** Readers see the rows of sealed shards alone; others wait in the log. */
function openRows({ rows, inShards }: RunSummary['dataSet']): string | null {
  if (rows <= inShards) return null
  return `${count(inShards)} of ${counted(rows, 'row')}; ${count(rows - inShards)} wait for their shards to end`
}

function headline(
  { pipeline, status, rows, requests, partitions, filePartitions, durationMs }: RunSummary,
  style: Style,
): string {
  const name = style('bold', pipeline)
  const took = duration(durationMs)
  const what = filePartitions === null ? 'all' : 'what the flags name'
  const completed =
    requests === 0 && rows === 0
      ? `nothing new; ${what} is exported`
      : `complete ${filePartitions === null ? '' : `for ${what} `}in ${took}`
  const words: Record<RunSummary['status'], readonly [Colour, string]> = {
    complete: ['green', completed],
    failed: ['red', partitions.failed > 0 ? `${counted(partitions.failed, 'partition')} failed` : 'failed'],
    budget: ['yellow', 'stopped early; the next run exports the rest'],
    interrupted: ['yellow', 'interrupted; what is committed stays'],
  }
  const [colour, text] = words[status]
  return `${name}: ${style(colour, text)}${status === 'complete' ? '' : ` (${took})`}`
}

function partitionsText({ total, done, failed, pending }: RunSummary['partitions'], style: Style): string {
  return [
    `${count(done)} of ${count(total)} done`,
    ...(failed > 0 ? [style('red', `${count(failed)} failed`)] : []),
    ...(pending > 0 ? [`${count(pending)} to do`] : []),
  ].join(', ')
}

/** Why the run stopped early. stderr has it too, but may be lost. */
function reasonLines({ error, causes }: RunSummary, style: Style): string[] {
  if (error === null || error.kind === 'interrupted') return []
  if (causes.some(({ what }) => what === error.what)) return []
  return ['', `  ${style('red', 'stopped')}: ${plainLine(error.what)}`, `    ${plainLine(error.next)}`]
}

function failureLines({ causes }: RunSummary, style: Style): string[] {
  if (causes.length === 0) return []
  const shown = causes.slice(0, MAX_CAUSES_SHOWN)
  const more = causes.slice(MAX_CAUSES_SHOWN).reduce((sum, { partitions }) => sum + partitions, 0)
  return [
    '',
    ...shown.flatMap(({ what, partitions, first, next, reasons }) => {
      const who = partitions === 1 ? plainLine(first) : counted(partitions, 'partition')
      return [`  ${style('red', who)}: ${plainLine(what)}${reasonsText(reasons)}`, `    ${plainLine(next)}`]
    }),
    ...(more > 0 ? [`  … and ${counted(more, 'partition')} more, for other causes`] : []),
  ]
}

/** ` (imported_at: not a timestamp, 1,302)`: fields and rules, no values. */
function reasonsText(reasons: Readonly<Record<string, number>>): string {
  const all = Object.entries(reasons).sort(([, a], [, b]) => b - a)
  if (all.length === 0) return ''
  const shown = all
    .slice(0, MAX_REASONS_SHOWN)
    .map(([reason, items]) => `${plainLine(reason)}, ${count(items)}`)
  return ` (${shown.join('; ')}${all.length > shown.length ? '; …' : ''})`
}

function nextLines(
  summary: RunSummary,
  { file, extract }: Pipeline,
  { again, output, isNarrowed }: HowItRan,
  { cwd, program }: Io,
): string[] {
  const { status, partitions } = summary
  const name = shellWord(shownPath(resolve(cwd, file), cwd))
  const place = output === undefined ? name : shellWord(plainLine(output))
  const lines: (readonly [string, string])[] = []
  if (status !== 'complete') {
    const isReached = !neverReached(summary)
    if (!isReached) lines.push(['find out why', `${program} check ${name}`])
    const isHopeful = isReached && helpsToGoOn(summary)
    const when = hasQuotaLeft(summary, extract) ? 'go on' : 'later'
    lines.push([
      isHopeful ? when : 'once corrected',
      again ??
        `${program} run ${name}${place === name ? '' : ` --output ${place}`}${isNarrowed ? ' (for the same part, with the same flags)' : ''}`,
    ])
    lines.push(['where it is', `${program} status ${place}`])
  }
  if (partitions.done > 0) {
    lines.push(['check the files', `${program} verify ${place}`])
    lines.push([
      'read them',
      `${program} query ${place} "SELECT count(*) FROM ${kindOfRows(extract.resource)}"`,
    ])
  }
  return lines.map(([what, command]) => `${what.padEnd(17)}${command}`)
}

/** Whether the same command may succeed next time. Otherwise it would only cost searches. */
function helpsToGoOn({ error, causes }: RunSummary): boolean {
  if (error !== null) return !NEEDS_SOMEBODY.has(error.kind)
  return causes.length === 0 || causes.some(({ kind }) => !NEEDS_SOMEBODY.has(kind))
}

/** Whether the same command may succeed at once: only its own budget of requests is used up, or nothing is. */
function hasQuotaLeft({ error, requests }: RunSummary, { maxRequests }: Pipeline['extract']): boolean {
  return error?.kind !== 'quota' || (maxRequests !== null && requests >= maxRequests)
}

/** Whether no search reached the service: host, port or proxy are wrong, or it is down. */
function neverReached({ status, requests, error, causes }: RunSummary): boolean {
  const kinds = error === null ? causes.map(({ kind }) => kind) : [error.kind]
  return status === 'failed' && requests === 0 && kinds.includes('transient')
}
