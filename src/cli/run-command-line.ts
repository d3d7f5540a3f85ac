import { DONE, exitCodeOf } from './exit-code.ts'
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
    return code
  } catch (error) {
    io.reportError(error)
    return exitCodeOf(error, world.signals.received)
  }
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
