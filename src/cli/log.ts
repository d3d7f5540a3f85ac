import { pino } from 'pino'
import pinoPretty from 'pino-pretty'
import type { Environment } from '../config/index.ts'
import { unlessSecret } from '../core/index.ts'
import type { LogFields, LogLevel, RunObserver } from '../run/index.ts'
import { plainLine } from './plain-text.ts'
import type { Screen } from './screen.ts'
import { wantsColour } from './style.ts'

export const LOG_FORMATS = ['pretty', 'json'] as const
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const

export type LogSettings = {
  readonly format: (typeof LOG_FORMATS)[number]
  readonly level: (typeof LOG_LEVELS)[number]
}

/** A log on stderr, a line each, written before the call returns. */
export function openLog(
  screen: Screen,
  env: Environment,
  { format, level }: LogSettings,
): RunObserver['log'] {
  const pretty = pinoPretty.prettyFactory({
    colorize: wantsColour(screen.stream, env),
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname',
    hideObject: true,
    messageFormat: (line, messageKey) => `${line[messageKey]}${fieldsText(line)}`,
  })
  const logger = pino(
    { level, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    { write: (line) => screen.write(format === 'json' ? line : pretty(line)) },
  )
  return (at: LogLevel, message: string, fields: LogFields = {}) => {
    logger[at](plainFields(fields), plainLine(unlessSecret(message, 'long')))
  }
}

function plainFields(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      plainLine(name),
      typeof value === 'string' ? plainLine(unlessSecret(value, 'long')) : value,
    ]),
  )
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'msg'])

/** ` wait_ms=300 reason="The service answered 503"` */
function fieldsText(line: Readonly<Record<string, unknown>>): string {
  return Object.entries(line)
    .filter(([name]) => !OWN_FIELDS.has(name))
    .map(([name, value]) => ` ${name}=${/\s/.test(String(value)) ? JSON.stringify(value) : value}`)
    .join('')
}
