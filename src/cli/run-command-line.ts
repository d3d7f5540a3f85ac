import { ExportError } from '../core/index.ts'
import { DONE, exitCode, exitCodeOf } from './exit-code.ts'
import type { Io, World } from './io.ts'
import { type LogSettings, openLog } from './log.ts'
import { parseCommandLine } from './parse.ts'
import { reportError } from './report-error.ts'
import { styleFor, wantsColour } from './style.ts'

/** Carries a command line out, telling what goes wrong. @returns the exit code */
export async function runCommandLine(words: readonly string[], world: World): Promise<number> {
  let io = openIo(world, { format: 'pretty', level: 'info' })
  let code = DONE
  try {
    await parseCommandLine(words, world.screen.columns, async ({ logFormat, logLevel }, work) => {
      io = openIo(world, { format: logFormat, level: logLevel })
      code = await work(io)
    })
    // What --help printed may be on its way still.
    await world.stdout.write('')
    const { failure } = world.stdout
    if (failure === null) return code
    io.reportError(failure)
    return code === DONE ? exitCode(failure.kind, null) : code
  } catch (error) {
    io.reportError(foreseen(error))
    return exitCodeOf(error, world.signals.received)
  }
}

/** Commands are loaded when they are called, from files. */
function foreseen(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && error.code === 'EMFILE')) return error
  const next = 'Raise the limit (ulimit -n), then run again.'
  return new ExportError('storage', 'Too many files are open', '', next, { cause: error })
}

function openIo(world: World, logging: LogSettings): Io {
  const { screen, env } = world
  const log = openLog(screen, env, logging)
  const style = styleFor(wantsColour(screen.stream, env))
  return {
    ...world,
    logging,
    log,
    reportError(error) {
      screen.clear()
      reportError(error, { screen, style, logging, log })
    },
  }
}
