import { randomUUID } from 'node:crypto'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { basename, relative } from 'node:path'
import { format } from 'node:util'
import {
  ADDRESS_ATTEMPT_MS,
  ExportError,
  hasCode,
  isExportError,
  plainError,
  shellWord,
} from '../core/index.ts'
import { forEachFile, type Io, type ProcessContext } from './command-line/command.ts'
import { isShownToPeople, type LogSettings, openLog, reportError } from './log/log.ts'
import { asFlags, type Call, overview, parseCommandLine } from './parse.ts'
import { DONE, exitCode, exitCodeOf, FAILED } from './terminal/exit-code.ts'
import { Output } from './terminal/output.ts'
import { Screen, styleFor, wantsColour } from './terminal/screen.ts'
import { Signals } from './terminal/signals.ts'
import { plainJson, stopwatch } from './terminal/text.ts'

export async function start(): Promise<number> {
  // For SDKs and drivers of databases too.
  setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_ATTEMPT_MS)
  const words = process.argv.slice(2)
  const screen = new Screen(process.stderr, process.env)
  // The message may quote data.
  let report = ({ name }: Error): void => screen.write(`spillway: An unexpected error: ${name}\n`, 'error')
  // A defect that no command caught: the state of the process is unknown. Committed data is on disk.
  process.on('uncaughtException', (error) => {
    report(error)
    process.exit(FAILED)
  })
  // Warnings of libraries are logged. Traces are switched off: they have passwords and signatures in them.
  let warn = (_message: string): void => {}
  process.removeAllListeners('warning').on('warning', ({ name, message }) => warn(`${name}: ${message}`))
  for (const name of ['DEBUG', 'AZURE_LOG_LEVEL']) delete process.env[name]
  const context = {
    env: process.env,
    cwd: process.cwd(),
    program: programName(process.argv[1] ?? ''),
    stdout: new Output(process.stdout, process.env),
    screen,
    signals: new Signals(),
  }
  return runCommandLine(words, context, (io, hasBegun) => {
    report = io.reportError
    warn = (message) => io.log('debug', message)
    // Before, yargs prints help and completions.
    const printed = hasBegun ? (['log', 'info'] as const) : []
    for (const method of ['debug', 'warn', 'error', 'trace', ...printed] as const)
      console[method] = (...words) => io.log('debug', format(...words))
  })
}

function programName(path: string): string {
  const name = basename(path)
  return name === 'main.js' ? `node ${shellWord(relative(process.cwd(), path))}` : name
}

/** They serve until they are stopped. */
const SERVERS = ['sandbox', 'worker']

/** @param onIo is told what errors are reported by, and whether a command has begun */
export async function runCommandLine(
  given: readonly string[],
  context: ProcessContext,
  onIo: (io: Io, hasBegun: boolean) => void = () => {},
): Promise<number> {
  const words = asFlags(given)
  const run = randomUUID()
  // An invalid command line is reported in the format that it requests.
  let io = openIo(context, run, { format: wantsJson(words) ? 'json' : 'pretty', level: 'info' })
  onIo(io, false)
  let ticker: NodeJS.Timeout | undefined
  let code = DONE
  let isJson = false
  // As other programs lay out their help.
  const columns = Number(context.env.COLUMNS) || context.screen.columns
  try {
    if (given.length === 0) context.screen.write(`${overview(columns)}\n\n`)
    const wantsOverview = words.length === 1 && words[0] === '--help'
    if (wantsOverview) await context.stdout.line(overview(columns))
    const call = wantsOverview ? null : await parseCommandLine(words, columns)
    if (call !== null) {
      const { args } = call
      const { logFormat, logLevel } = args
      io = openIo(context, run, { format: logFormat, level: logLevel })
      onIo(io, true)
      const command = String(args._[0])
      const { screen } = context
      screen.progress = progressOf(screen, io.logging, args.noProgress === true)
      if (!SERVERS.includes(command)) ticker = showStatus(command, io)
      isJson = args.json === true
      code = await carryOut(call, io)
    }
    // The output of --help may not be written yet.
    await context.stdout.write('')
    const { failure } = context.stdout
    if (failure === null) return code
    io.reportError(failure)
    return code === DONE ? exitCode(failure.kind, null) : code
  } catch (error) {
    const reported = fileLimit(error)
    io.reportError(reported)
    // One that printed its result has said there what failed.
    if (isJson && !context.stdout.hasResult && isExportError(reported))
      await context.stdout.line(plainJson({ error: plainError(reported) }))
    return exitCodeOf(error, context.signals.received)
  } finally {
    clearInterval(ticker)
  }
}

/** With --json each file is an object a line; YAML is separated by `---`, text by an empty line, unless it is one table. */
async function carryOut({ command, args }: Call, io: Io): Promise<number> {
  const { run, eachFile = false, table } = command
  if (!eachFile) return run(args, io)
  const { json, resolved, output } = args
  // yargs gives a list, as the usage has `<pipeline..>`.
  const files = args.pipeline as readonly string[]
  const isSeveral = files.length > 1
  if (isSeveral && table !== undefined && json !== true) return table(files, output as string | undefined, io)
  if (!isSeveral) return run({ ...args, pipeline: files[0] }, io)
  return forEachFile(
    files,
    io,
    async (pipeline) => {
      if (pipeline !== files[0] && json !== true) await io.stdout.line(resolved === true ? '---' : '')
      return run({ ...args, pipeline }, io)
    },
    async (file, error) => {
      if (json === true) await io.stdout.line(plainJson({ pipeline: null, file, error: plainError(error) }))
    },
  )
}

// Faster changes cannot be read.
const REDRAW_MS = 250
const HALF_MINUTE_MS = 30_000

/** How a command shows its progress. @param isUnwanted `--no-progress` */
export function progressOf(
  { canRedraw }: Screen,
  { format, level }: LogSettings,
  isUnwanted: boolean,
): Screen['progress'] {
  if (isUnwanted) return 'none'
  if (canRedraw && format === 'pretty') return 'redrawn'
  return isShownToPeople(level) ? 'lines' : 'none'
}

/** Where no line is redrawn, it says one each half minute: a silent process looks as if it hangs. */
export function showStatus(
  command: string,
  { screen, log, logging }: Pick<Io, 'screen' | 'log' | 'logging'>,
): NodeJS.Timeout | undefined {
  if (screen.progress === 'none') return undefined
  if (screen.progress === 'redrawn') {
    const draw = (): void => {
      const status = screen.status?.()
      if (status !== undefined) screen.show(status.text)
    }
    return setInterval(draw, REDRAW_MS).unref()
  }
  const startedMs = performance.now()
  return setInterval(() => {
    const { text, fields } = screen.status?.() ?? {
      text: `${command}: at work for ${stopwatch(performance.now() - startedMs)}`,
      fields: null,
    }
    if (logging.format === 'pretty' || fields === null) screen.write(`${text}\n`)
    else log('info', 'progress', { event: 'progress', ...fields })
  }, HALF_MINUTE_MS).unref()
}

function wantsJson(words: readonly string[]): boolean {
  return words.some((word, i) => {
    return word === '--log-format=json' || (word === 'json' && words[i - 1] === '--log-format')
  })
}

/** Loading a command opens files: `EMFILE` becomes an error that says what to do. */
function fileLimit(error: unknown): unknown {
  if (!hasCode(error, 'EMFILE')) return error
  const next = 'Raise the limit (ulimit -n), then run again.'
  return new ExportError({ kind: 'storage', what: 'Too many files are open', where: '', next, cause: error })
}

function openIo(world: ProcessContext, run: string, logging: LogSettings): Io {
  const { screen, env } = world
  const log = openLog({ screen, env, run }, logging)
  const style = styleFor(wantsColour(screen.stream, env))
  if (logging.format === 'json') screen.divert((text, level) => log(level, text))
  return {
    ...world,
    logging,
    log,
    run,
    reportError(error) {
      screen.clear()
      reportError(error, { screen, style, logging, log })
    },
  }
}
