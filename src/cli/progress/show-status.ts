import type { Io } from '../command-line/command.ts'
import { isShownToPeople, type LogSettings } from '../log/log.ts'
import type { Screen } from '../terminal/screen.ts'
import { stopwatch } from '../terminal/text.ts'

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
