import { ExportError, isExportError, unlessSecret } from '../../core/index.ts'
import type { RunObserver } from '../../run/index.ts'
import { plainText } from '../terminal/plain-text.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Style } from '../terminal/style.ts'
import type { LogSettings } from './log.ts'

export type ErrorDesk = {
  readonly screen: Screen
  readonly style: Style
  readonly logging: LogSettings
  readonly log: RunObserver['log']
  /** A log for machines alone. */
  readonly record?: RunObserver['log']
}

/**
 * Tells on stderr what went wrong: as text, or as a log line where the log is JSON. Errors that are not
 * foreseen are defects; their messages may quote data (JSON.parse does), so only their kind is shown, and where
 * they come from when --log-level requests it.
 */
export function reportError(error: unknown, { screen, style, logging, log, record }: ErrorDesk): void {
  // An error may be older than what is known now.
  const text = unlessSecret(isExportError(error) ? error.message : defect(error, logging), 'long')
  const fields = { event: 'error', kind: isExportError(error) ? error.kind : 'defect' }
  if (logging.format === 'json') log('error', text, fields)
  else {
    screen.write(`${style('red', 'spillway:')} ${plainText(text)}\n`)
    record?.('error', text, fields)
  }
}

function defect(error: unknown, { level }: LogSettings): string {
  const name = error instanceof Error ? error.name : typeof error
  const wantsMore = level === 'debug' || level === 'trace'
  const advice = wantsMore ? framesOf(error) : 'Add --log-level debug to see where it comes from.'
  return `An error that was not foreseen: ${systemMessage(error) ?? name}. ${advice}`
}

/** Messages of system calls hold a code and a path, never data. */
function systemMessage(error: unknown): string | null {
  return error instanceof Error && 'syscall' in error ? error.message : null
}

function framesOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return `\n${frames.join('\n')}`
}

/** The advice for trouble that passes, where no export is at work that could go on. */
export function tryLater(error: ExportError): ExportError {
  if (error.kind !== 'transient' && error.kind !== 'quota') return error
  const next =
    error.kind === 'quota'
      ? 'Try again later.'
      : 'See that the address is right; where it is, try again later.'
  return new ExportError(error.kind, error.what, error.where, next, { cause: error })
}
