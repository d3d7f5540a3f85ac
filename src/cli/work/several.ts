import { Writable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { isExportError, nullIf } from '../../core/index.ts'
import { readStatus } from '../../data-set/index.ts'
import type { Command, CommonArgs, Io } from '../command-line/command.ts'
import { dataSetFrom } from '../command-line/pipeline-options.ts'
import { DONE, exitCode, gravest } from '../terminal/exit-code.ts'
import { Output } from '../terminal/output.ts'
import { cutTo } from '../terminal/screen.ts'
import { alignedTable, type Column } from '../terminal/table.ts'
import { count, plainJson, plainLine, roughly } from '../terminal/text.ts'

/** The arguments of a command of one pipeline file. */
export type OneFile = CommonArgs & { readonly pipeline: string; readonly json: boolean }

/**
 * A command of one pipeline file for several: a line each, with what the command says first. With --json, and where it
 * prints a file or sends requests, it is simply called for each.
 * @param pauseMs between two that may share a rate limit
 */
export function severally<Args extends OneFile>(one: Command<Args>, pauseMs = 0): Command<Args> {
  return {
    options: one.options,
    async run(args, io) {
      // yargs gives a list, as the usage has `<pipeline..>`.
      const files = [args.pipeline].flat()
      const codes: number[] = []
      const rows: Row[] = []
      const isPlain = files.length === 1 || args.json || args.resolved === true || args.fix === true
      for (const [i, pipeline] of files.entries()) {
        if (i > 0 && pauseMs > 0) await setTimeout(pauseMs)
        try {
          const own = { ...args, pipeline }
          if (isPlain) codes.push(await one.run(own, io))
          else {
            const { code, text } = await captured((quiet) => one.run(own, quiet), io)
            codes.push(code)
            // --output may name another data set.
            const given = typeof args.output === 'string' ? args.output : pipeline
            rows.push(await rowOf(given, { code, verdict: verdictOf(text) }, io))
          }
        } catch (error) {
          if (!isExportError(error) || files.length === 1) throw error
          io.reportError(error)
          const code = exitCode(error.kind, io.signals.received)
          codes.push(code)
          if (args.json)
            await io.stdout.line(plainJson({ pipeline: null, file: pipeline, error: error.message }))
          else rows.push({ ...NOTHING, name: pipeline, code, verdict: error.what })
        }
      }
      if (!isPlain) {
        const { columns, style } = io.stdout
        await io.stdout.lines(alignedTable({ columns: COLUMNS, rows: () => rows }, columns, style))
      }
      return gravest(codes)
    },
  }
}

type Row = {
  readonly name: string
  readonly code: number
  readonly verdict: string
  readonly rows: string
  readonly lastRun: string
  readonly newest: string
  readonly searches: string
}

const NOTHING = { rows: '', lastRun: '', newest: '', searches: '' }

const MAX_VERDICT = 80

const COLUMNS: readonly Column<Row>[] = [
  { title: 'pipeline', cell: ({ name }) => plainLine(name), least: 8 },
  {
    title: 'verdict',
    // stderr has the whole error.
    cell: ({ verdict }) => cutTo(plainLine(verdict), MAX_VERDICT),
    least: 24,
    colour: ({ code }) => (code === DONE ? null : 'red'),
  },
  { title: 'rows', cell: ({ rows }) => rows, align: 'right' },
  { title: 'run ago', align: 'right', cell: ({ lastRun }) => lastRun },
  { title: 'window ago', align: 'right', cell: ({ newest }) => newest, isOptional: true },
  { title: 'searches left', cell: ({ searches }) => searches, align: 'right', isOptional: true },
]

/** The figures of a data set that a table of many shows. */
async function rowOf(given: string, { code, verdict }: Pick<Row, 'code' | 'verdict'>, io: Io): Promise<Row> {
  // What differs from the file was logged by the command.
  const { pipeline } = await dataSetFrom({ pipeline: given }, { ...io, log: () => {} })
  const nowMs = Date.now()
  const status = await readStatus(pipeline, nowMs).catch(nullIf('config'))
  const { name } = pipeline
  const row = {
    ...NOTHING,
    name,
    code,
    verdict: verdict.startsWith(`${name}: `) ? verdict.slice(name.length + 2) : verdict,
  }
  if (status === null) return row
  const { totals, lastRun, searchesRemaining, partitions } = status
  let newestMs = 0
  for (const { state, window } of partitions()) {
    if (state === 'done' && window !== null) newestMs = Math.max(newestMs, Date.parse(window.until))
  }
  const ago = (ms: number): string => roughly(Math.max(0, nowMs - ms))
  return {
    ...row,
    rows: count(totals.rows),
    lastRun: lastRun === null ? 'never' : ago(Date.parse(lastRun.finished_at ?? lastRun.started_at)),
    newest: newestMs === 0 ? '' : ago(newestMs),
    searches: searchesRemaining === null ? '' : count(searchesRemaining),
  }
}

/** What a command says first; of a list of checks, the first that failed. */
function verdictOf(text: string): string {
  const lines = text.split('\n')
  const failed = lines.find((line) => line.startsWith('no  '))
  if (failed !== undefined) return failed.slice(4).replace(/ {2,}/, ': ')
  return lines[0]?.startsWith('ok  ') === true ? 'ok' : (lines[0] ?? '')
}

/** Calls a command whose output is not shown. */
async function captured(
  run: (io: Io) => Promise<number>,
  io: Io,
): Promise<{ readonly code: number; readonly text: string }> {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  const code = await run({ ...io, stdout: new Output(stream as unknown as NodeJS.WriteStream, {}) })
  return { code, text }
}
