import { join, resolve } from 'node:path'
import { learnSecrets, readSecret, serviceFromEnvironment } from '../../config/index.ts'
import { ExportError, isExportError, type ServiceSettings, systemClock } from '../../core/index.ts'
import { fetchReports } from '../../run/index.ts'
import { command } from '../command-line/command.ts'
import type { Io } from '../command-line/io.ts'
import { tryLater } from '../log/report-error.ts'
import { type ReportFields, reportMarkdown } from '../results/report-markdown.ts'
import { saveFile } from '../results/save-file.ts'
import { DONE, exitCode, FAILED } from '../terminal/exit-code.ts'
import { plainJson } from '../terminal/plain-text.ts'
import { announceStop } from '../terminal/signals.ts'

export const report = command({
  options: (yargs) =>
    yargs
      .positional('id', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Ids of the reports; SPILLWAY_BASE_URL and SPILLWAY_TOKEN name the service',
      })
      .options({
        format: { choices: ['markdown', 'json'] as const, default: 'markdown' as const, describe: 'How' },
        output: {
          type: 'string',
          requiresArg: true,
          describe: 'Folder: one file a report instead of printing them',
        },
      })
      .example('$0 report 12 14', 'To read')
      .example('$0 report 12 14 --format json', 'One object a line')
      .example('$0 report 12 --output reports', 'Writes reports/report-12.md'),
  async run(args, io) {
    const ids = [...new Set(args.id.map(reportId))]
    await learnSecrets(io.env)
    const settings = await serviceFromEnvironment(io.env)
    const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
    try {
      return await eachReport(settings, ids, signals.stop, io, deliver(args, io))
    } finally {
      signals.release()
    }
  },
})

type Deliver = (id: number, found: ReportFields) => Promise<void>

/** Prints reports, or writes each to a file and prints its name. */
function deliver(
  { format, output }: { readonly format: 'markdown' | 'json'; readonly output: string | undefined },
  { stdout, cwd }: Io,
): Deliver {
  let first = true
  return async (id, found) => {
    const text = format === 'json' ? `${reportJson(id, found)}\n` : reportMarkdown(found)
    if (output !== undefined) {
      const path = join(resolve(cwd, output), `report-${id}.${EXTENSIONS[format]}`)
      await saveFile(path, text, 'The report')
      await stdout.line(path)
      return
    }
    if (!first && format === 'markdown') await stdout.write('\n---\n\n')
    first = false
    await stdout.write(text)
  }
}

/** @throws ExportError `data` when it is nested deeper than JSON can be written: reading has no such limit */
function reportJson(id: number, found: ReportFields): string {
  try {
    return plainJson(found)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const next = 'Print it with --format markdown.'
    throw new ExportError('data', 'The report is nested too deep to be written as JSON', `report ${id}`, next)
  }
}

const EXTENSIONS = { markdown: 'md', json: 'json' } as const

/** One after the other; a report that can not be had does not keep the others back. */
async function eachReport(
  settings: ServiceSettings,
  ids: readonly number[],
  stop: AbortSignal,
  io: Io,
  onReport: Deliver,
): Promise<number> {
  const { env, log } = io
  const options = { clock: systemClock, readSecret: (name: string) => readSecret(name, env), stop, log }
  let code = DONE
  let at = 0
  while (at < ids.length) {
    try {
      for await (const found of fetchReports(settings, ids.slice(at), options)) {
        await onReport(ids[at]!, found)
        at++
      }
    } catch (error) {
      if (!isExportError(error)) throw error
      io.reportError(tryLater(error))
      code = exitCode(error.kind, io.signals.received)
      // Anything but a failure of this one report concerns the others as well.
      if (code !== FAILED) return code
      at++
      // Fetching begins anew and does not know when the last request was.
      await systemClock.sleep(1000 / settings.basicRequestsPerSecond, stop)
    }
  }
  return code
}

/** The id of a threat-flow report as people type it. @throws ExportError 'config' when it is none */
export function reportId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(id)) return id
  throw new ExportError(
    'config',
    'Report ids are whole numbers from 1 on',
    '',
    'See `spillway report --help`.',
  )
}
