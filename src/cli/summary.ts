import { resolve } from 'node:path'
import type { ExportError, Pipeline } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'
import type { GivenFlags } from './given-flags.ts'
import { plainLine } from './plain-text.ts'
import { bytes, count, counted, duration } from './quantities.ts'
import { shellWord } from './shell.ts'
import { shownPath } from './shown-path.ts'
import type { Colour, Style } from './style.ts'

const MAX_FAILURES_SHOWN = 10

/** What `run --json` prints. */
export function summaryJson(summary: RunSummary): Readonly<Record<string, unknown>> {
  const { pipeline, status, partitions, rows, shards, requests, retries, quarantined, repeated } = summary
  return {
    pipeline,
    status,
    partitions,
    rows,
    shards,
    bytes: summary.bytes,
    requests,
    retries,
    quarantined,
    replaced_nuls: summary.replacedNuls,
    repeated,
    searches_remaining: summary.searchesRemaining,
    duration_ms: summary.durationMs,
    manifest: summary.manifest,
    error: summary.error?.message ?? null,
    failures: summary.failures,
  }
}

/** The same for one of several pipelines that could not begin: nothing was done. @param name null: not even read */
export function notBegunJson(
  name: string | null,
  { kind, message }: ExportError,
): Readonly<Record<string, unknown>> {
  return {
    pipeline: name,
    status: kind === 'interrupted' ? 'interrupted' : 'failed',
    partitions: { total: 0, done: 0, failed: 0, pending: 0 },
    rows: 0,
    shards: 0,
    bytes: 0,
    requests: 0,
    retries: 0,
    quarantined: 0,
    replaced_nuls: 0,
    repeated: 0,
    searches_remaining: null,
    duration_ms: 0,
    manifest: null,
    error: message,
    failures: [],
  }
}

export type Reader = {
  readonly cwd: string
  /** How spillway was called, for the commands that are proposed. */
  readonly program: string
  /** The command that goes on with the run; null: `run` with the flags. */
  readonly again: string | null
  readonly flags: GivenFlags
  readonly style: Style
}

/** What `run` prints for people: how it went, what there is now, and what to do next. */
export function summaryText(summary: RunSummary, pipeline: Pipeline, reader: Reader): string {
  const { cwd, style } = reader
  const { partitions, rows, shards, requests, retries, quarantined, searchesRemaining } = summary
  const seconds = summary.durationMs / 1000
  const facts: (readonly [string, string])[] = [
    ['partitions', partitionsText(partitions, style)],
    ['rows', rows === 0 ? '0' : `${count(rows)} (${count(rows / Math.max(seconds, 0.001))} a second)`],
    ['written', `${counted(shards, 'shard')}, ${bytes(summary.bytes)}`],
    [
      'requests',
      `${count(requests)}${retries === 0 ? '' : `, ${counted(retries, 'retry', 'retries')} among them`}`,
    ],
  ]
  if (searchesRemaining !== null) facts.push(['searches left', count(searchesRemaining)])
  if (quarantined > 0)
    facts.push(['quarantined', style('yellow', `${counted(quarantined, 'item')}, in _quarantine`)])
  if (summary.repeated > 0) {
    facts.push([
      'repeated',
      `${counted(summary.repeated, 'item')} that the service sent again, exported once`,
    ])
  }
  if (summary.replacedNuls > 0)
    facts.push(['replaced', style('yellow', `${counted(summary.replacedNuls, 'NUL character')}, by U+FFFD`)])
  facts.push(
    ['files in', shownPath(pipeline.load.path, cwd)],
    [
      'manifest',
      summary.manifest === null ? style('red', 'could not be written') : shownPath(summary.manifest, cwd),
    ],
  )
  const lines = [
    headline(summary, style),
    '',
    ...facts.map(([name, value]) => `  ${style('dim', name.padEnd(14))}${value}`),
    ...failureLines(summary, style),
    '',
    ...nextLines(summary, pipeline, reader).map((line) => `  ${line}`),
  ]
  return lines.join('\n')
}

function headline(
  { pipeline, status, rows, requests, partitions, durationMs }: RunSummary,
  style: Style,
): string {
  const name = style('bold', pipeline)
  const took = duration(durationMs)
  const words: Record<RunSummary['status'], readonly [Colour, string]> = {
    complete: [
      'green',
      requests === 0 && rows === 0 ? 'nothing new; all is exported' : `complete in ${took}`,
    ],
    failed: ['red', partitions.failed > 0 ? `${counted(partitions.failed, 'partition')} failed` : 'failed'],
    budget: ['yellow', 'stopped before the end; the rest waits for the next run'],
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

function failureLines({ failures, partitions }: RunSummary, style: Style): string[] {
  if (failures.length === 0) return []
  const shown = failures.slice(0, MAX_FAILURES_SHOWN)
  const more = partitions.failed - shown.length
  return [
    '',
    ...shown.map(
      ({ partition, message }) => `  ${style('red', plainLine(partition))}  ${plainLine(message)}`,
    ),
    ...(more > 0 ? [`  … and ${count(more)} more`] : []),
  ]
}

function nextLines(
  { status, partitions }: RunSummary,
  { file, load, extract }: Pipeline,
  { cwd, program, again, flags }: Reader,
): string[] {
  const name = shellWord(shownPath(resolve(cwd, file), cwd))
  const read = load.format.kind === 'parquet' ? 'read_parquet' : 'read_csv'
  const extension =
    load.format.kind === 'csv' && load.format.compression === 'gzip' ? 'csv.gz' : load.format.kind
  const files = `${shownPath(load.path, cwd)}/${extract.resource}/**/*.${extension}`.replaceAll("'", "''")
  const lines: (readonly [string, string])[] = []
  if (status !== 'complete') {
    lines.push(['go on', again ?? `${program} run ${name}${flags.run}`])
    lines.push(['where it is', `${program} status ${name}${flags.read}`])
  }
  if (partitions.done > 0) {
    lines.push(['check the files', `${program} verify ${name}${flags.read}`])
    lines.push([
      'read them',
      `duckdb -c ${shellSql(`SELECT count(*) FROM ${read}('${files}', hive_partitioning = true)`)}`,
    ])
  }
  return lines.map(([what, command]) => `${what.padEnd(17)}${command}`)
}

function shellSql(sql: string): string {
  return `"${sql.replace(/[\\"$`]/g, '\\$&')}"`
}
