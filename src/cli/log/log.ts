import { hostname } from 'node:os'
import type { Environment } from '../../config/index.ts'
import { unlessSecret } from '../../core/index.ts'
import type { LogFields, LogLevel, RunObserver } from '../../run/index.ts'
import { plainJson, plainLine } from '../terminal/plain-text.ts'
import type { Screen } from '../terminal/screen.ts'
import { type Colour, type Style, styleFor, wantsColour } from '../terminal/style.ts'
import type { LogFile } from './log-file.ts'

export const LOG_FORMATS = ['pretty', 'json'] as const
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const

export type LogSettings = {
  readonly format: (typeof LOG_FORMATS)[number]
  readonly level: (typeof LOG_LEVELS)[number]
}

export type LogTargets = {
  readonly screen: Screen
  readonly env: Environment
  /** Gets every line as JSON as well; null: there is none. */
  readonly file: LogFile | null
  /** On every line of JSON. */
  readonly run: string
}

export type Logs = {
  /** Lines are written before the call returns. */
  readonly log: RunObserver['log']
  /** The same for machines alone: nothing of it is shown to people. */
  readonly record: RunObserver['log']
}

/** The log on stderr, a line each, and in the log file. */
export function openLogs({ screen, env, file, run }: LogTargets, { format, level }: LogSettings): Logs {
  const style = styleFor(wantsColour(screen.stream, env))
  const least = LOG_LEVELS.indexOf(level)
  const isWanted = (at: LogLevel): boolean => LOG_LEVELS.indexOf(at) >= least
  const forPeople = format === 'pretty'
  const forMachines = !forPeople || file !== null
  const write = (at: LogLevel, message: string, fields: LogFields, isShown: boolean): void => {
    const shows = isShown && forPeople && isWanted(levelForPeople(at, fields))
    const records = forMachines && isWanted(at)
    if (!shows && !records) return
    const line = { at, fields: plainFields(fields), message: plainLine(unlessSecret(message, 'long')) }
    if (shows) screen.writeLog(prettyLine(line, style))
    if (!records) return
    const json = jsonLine(line, run)
    if (!forPeople) screen.writeLog(json)
    file?.write(json)
  }
  return {
    log: (at, message, fields = {}) => write(at, message, fields, true),
    record: (at, message, fields = {}) => write(at, message, fields, false),
  }
}

type Line = { readonly at: LogLevel; readonly message: string; readonly fields: LogFields }

/** What tells machines how a run goes people see in the progress and in the summary. */
function levelForPeople(at: LogLevel, { event, alike }: LogFields): LogLevel {
  // The summary counts those that fail like one before.
  if (event === 'partition.failed' && typeof alike === 'number' && alike > 0) return 'debug'
  return at === 'info' && typeof event === 'string' && FOR_MACHINES.test(event) ? 'debug' : at
}

const FOR_MACHINES = /^(?:run|partition|shard)\.|^stop$/

const HOST = hostname()

function jsonLine({ at, message, fields }: Line, run: string): string {
  const time = new Date().toISOString()
  const { event = 'note', ...others } = fields
  return `${plainJson({ level: at, time, pid: process.pid, hostname: HOST, run, event, ...others, msg: message })}\n`
}

const COLOURS: Readonly<Record<LogLevel, Colour>> = {
  trace: 'dim',
  debug: 'dim',
  info: 'green',
  warn: 'yellow',
  error: 'red',
}

/** `[12:42:41] WARN: trying again request="domain.acme.com/all, page 3" retry=1 of=8 wait_ms=300` */
function prettyLine({ at, message, fields }: Line, style: Style): string {
  const time = new Date().toTimeString().slice(0, 8)
  return `[${time}] ${style(COLOURS[at], at.toUpperCase())}: ${message}${fieldsText(fields, message)}\n`
}

/** What the message says already is for machines. */
const UNSHOWN: ReadonlySet<string> = new Set(['event', 'for', 'pipeline', 'alike'])

function fieldsText(fields: LogFields, message: string): string {
  const isSaid = (value: unknown): boolean => typeof value === 'string' && message.includes(value)
  return Object.entries(fields)
    .filter(([name, value]) => !(UNSHOWN.has(name) || (name === 'partition' && isSaid(value))))
    .map(([name, value]) => ` ${name}=${/\s/.test(String(value)) ? JSON.stringify(value) : value}`)
    .join('')
}

function plainFields(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      plainLine(name),
      typeof value === 'string' ? plainLine(unlessSecret(value, 'long')) : value,
    ]),
  )
}
