import { hostname } from 'node:os'
import {
  ExportError,
  isExportError,
  type Log,
  type LogFields,
  type LogLevel,
  plainError,
  unlessSecret,
} from '../../core/index.ts'
import type { Environment } from '../../pipeline/index.ts'
import { type Colour, type Screen, type Style, styleFor, wantsColour } from '../terminal/screen.ts'
import { plainJson, plainLine, plainText } from '../terminal/text.ts'

export const LOG_FORMATS = ['pretty', 'json'] as const
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export type LogSettings = {
  readonly format: (typeof LOG_FORMATS)[number]
  readonly level: (typeof LOG_LEVELS)[number]
}

export function isShownToPeople(level: LogSettings['level']): boolean {
  return LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf('info')
}

type LogTargets = {
  readonly screen: Screen
  readonly env: Environment
  /** On every line of JSON. */
  readonly run: string
}

/** The log on stderr, a line each. Lines are written before the call returns. */
export function openLog({ screen, env, run }: LogTargets, { format, level }: LogSettings): Log {
  const style = styleFor(wantsColour(screen.stream, env))
  const least = LOG_LEVELS.indexOf(level)
  return (at, message, fields = {}) => {
    const shownAt = format === 'pretty' ? levelFor(at, fields) : at
    if (shownAt === null || LOG_LEVELS.indexOf(shownAt) < least) return
    const line = { at, fields: plainFields(fields), message: plainLine(unlessSecret(message, 'long')) }
    if (format === 'pretty') screen.write(prettyLine(line, style))
    else screen.writeLog(jsonLine(line, run))
  }
}

type Line = { readonly at: LogLevel; readonly message: string; readonly fields: LogFields }

/** Events of a run are for machines: people see them in the progress and in the summary. null: shown in another way. */
function levelFor(at: LogLevel, { event, alike }: LogFields): LogLevel | null {
  if (event === 'error') return null
  // The summary counts partitions that fail for the same cause.
  if (event === 'partition.failed' && typeof alike === 'number' && alike > 0) return 'debug'
  // It is an error where the run failed, which the summary says.
  if (event === 'run.finish') return 'debug'
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

/** Fields that the message repeats. */
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

type ErrorOutput = {
  readonly screen: Screen
  readonly style: Style
  readonly logging: LogSettings
  readonly log: Log
}

/** Of a defect only the kind is shown, and with --log-level debug the stack: its message may quote data. */
export function reportError(error: unknown, { screen, style, logging, log }: ErrorOutput): void {
  // Some secrets may have become known after the error was made.
  const text = unlessSecret(isExportError(error) ? error.onTerminal : defect(error, logging), 'long')
  const fields = { event: 'error', kind: isExportError(error) ? error.kind : 'defect' }
  if (logging.format === 'pretty') screen.write(`${style('red', 'spillway:')} ${plainText(text)}\n`)
  log('error', text, fields)
}

function defect(error: unknown, { level }: LogSettings): string {
  // Messages of system calls hold a code and a path, never data.
  const what = error instanceof Error ? ('syscall' in error ? error.message : error.name) : typeof error
  const advice = level === 'debug' ? framesOf(error) : 'Add --log-level debug to see where it comes from.'
  return `An unexpected error: ${what}. ${advice}`
}

function framesOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return `\n${frames.join('\n')}`
}

/** The advice for temporary errors of commands that have nothing to resume. */
export function tryLater(error: ExportError): ExportError {
  if (error.kind !== 'transient' && error.kind !== 'quota') return error
  const next =
    error.kind === 'quota' ? 'Try again later.' : 'Check the address; if it is right, try again later.'
  return new ExportError({ ...plainError(error), next, cause: error })
}
