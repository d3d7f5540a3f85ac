import { setTimeout } from 'node:timers/promises'
import { isExportError, plainError } from '../../core/index.ts'
import type { Command } from '../command-line/command.ts'
import { exitCode, gravest } from '../terminal/exit-code.ts'
import { plainJson } from '../terminal/text.ts'

/** What such a command may be given. */
type Args = { readonly pipeline?: unknown; readonly json?: unknown; readonly resolved?: unknown }

/**
 * A command of one pipeline file for several: it is called for each, and the gravest exit code counts. With --json each
 * prints an object a line; YAML is separated as YAML documents are, text by an empty line.
 * @param pauseMs between two that may share a rate limit
 */
export function severally(one: Command, pauseMs = 0): Command {
  return {
    ...one,
    async run(args, io) {
      const { pipeline, json, resolved } = args as Args
      // yargs gives a list, as the usage has `<pipeline..>`.
      const files = [pipeline].flat()
      if (files.length === 1) return one.run({ ...args, pipeline: files[0] }, io)
      const codes: number[] = []
      for (const [i, file] of files.entries()) {
        if (i > 0 && pauseMs > 0) await setTimeout(pauseMs)
        if (i > 0 && json !== true) await io.stdout.line(resolved === true ? '---' : '')
        try {
          codes.push(await one.run({ ...args, pipeline: file }, io))
        } catch (error) {
          if (!isExportError(error)) throw error
          io.reportError(error)
          codes.push(exitCode(error.kind, io.signals.received))
          if (json === true)
            await io.stdout.line(plainJson({ pipeline: null, file, error: plainError(error) }))
        }
      }
      return gravest(codes)
    },
  }
}
