import { setTimeout } from 'node:timers/promises'
import { isExportError, plainError } from '../../core/index.ts'
import type { Command, Io } from '../command-line/command.ts'
import { exitCode, gravest } from '../terminal/exit-code.ts'
import { plainJson } from '../terminal/text.ts'

/** With --json each prints an object a line; YAML is separated by `---`, text by an empty line. */
export async function runSeverally(
  { run, eachFile }: Command,
  args: Parameters<Command['run']>[0],
  io: Io,
): Promise<number> {
  if (eachFile === null) return run(args, io)
  const { pauseMs } = eachFile
  const { pipeline, json, resolved } = args
  // yargs gives a list, as the usage has `<pipeline..>`.
  const files = [pipeline].flat()
  if (files.length === 1) return run({ ...args, pipeline: files[0] }, io)
  const codes: number[] = []
  for (const [i, file] of files.entries()) {
    if (i > 0 && pauseMs > 0) await setTimeout(pauseMs)
    if (i > 0 && json !== true) await io.stdout.line(resolved === true ? '---' : '')
    try {
      codes.push(await run({ ...args, pipeline: file }, io))
    } catch (error) {
      if (!isExportError(error)) throw error
      io.reportError(error)
      codes.push(exitCode(error.kind, io.signals.received))
      if (json === true) await io.stdout.line(plainJson({ pipeline: null, file, error: plainError(error) }))
    }
  }
  return gravest(codes)
}
