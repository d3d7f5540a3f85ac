import { join, resolve } from 'node:path'
import { ExportError, isExportError, systemClock } from '../../core/index.ts'
import { learnSecrets, readSecret, serviceFromEnvironment } from '../../pipeline/index.ts'
import { fetchReport, type Report, Service } from '../../run/index.ts'
import { choiceOf, command, type Io, stringValue, wrongUsage } from '../command-line/command.ts'
import { tryLater } from '../log/log.ts'
import { saveFile } from '../results/save-file.ts'
import { DONE, exitCode, FAILED } from '../terminal/exit-code.ts'
import { untilStopped } from '../terminal/signals.ts'
import { plainJson, plainLine, plainText } from '../terminal/text.ts'

export const report = command({
  positionals: {
    id: {
      type: 'string',
      array: true,
      demandOption: true,
      describe: 'Ids of the reports; SPILLWAY_BASE_URL and SPILLWAY_TOKEN name the service',
    },
  },
  flags: {
    format: choiceOf(['markdown', 'json'], 'markdown', 'markdown or json'),
    output: stringValue('Folder: one file a report instead of printing them'),
  },
  examples: [
    ['$0 report 12 14', 'To read'],
    ['$0 report 12 14 --format json', 'One object a line'],
    ['$0 report 12 --output reports', 'Writes reports/report-12.md'],
  ],
  async run(args, io) {
    const ids = [...new Set(args.id.map(reportId))]
    await learnSecrets(io.env)
    const settings = await serviceFromEnvironment(io.env)
    return untilStopped(io, async ({ stop }) => {
      const { env, log } = io
      const read = (name: string) => readSecret(name, env)
      const options = { clock: systemClock, readSecret: read, stop, log, hidesTexts: false }
      const service = Service.forCalls(settings, options)
      try {
        return await deliverEach(service, ids, args, io)
      } finally {
        await service.close()
      }
    })
  },
})

const EXTENSIONS = { markdown: 'md', json: 'json' } as const

async function deliverEach(
  service: Service,
  ids: readonly number[],
  { format, output }: { readonly format: keyof typeof EXTENSIONS; readonly output?: string | undefined },
  io: Io,
): Promise<number> {
  const { stdout, cwd } = io
  let code = DONE
  for (const id of ids) {
    try {
      const report = await fetchReport(service, id)
      const text = format === 'json' ? `${reportJson(report)}\n` : reportMarkdown(report)
      if (output === undefined) {
        const separator = stdout.hasResult && format === 'markdown' ? '\n---\n\n' : ''
        await stdout.write(`${separator}${text}`)
      } else {
        const path = join(resolve(cwd, output), `report-${report.id}.${EXTENSIONS[format]}`)
        await saveFile(path, text, 'The report')
        await stdout.line(path)
      }
    } catch (error) {
      if (!isExportError(error)) throw error
      io.reportError(tryLater(error))
      code = exitCode(error.kind, io.signals.received)
      // Other errors concern all reports.
      if (code !== FAILED) return code
    }
  }
  return code
}

/** @throws ExportError `data` when it is nested too deeply to be written as JSON; reading has no such limit */
function reportJson(report: Report): string {
  try {
    return plainJson(report)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const next = 'Print it with --format markdown.'
    throw new ExportError({
      kind: 'data',
      what: 'The report is nested too deep to be written as JSON',
      where: `report ${report.id}`,
      next,
    })
  }
}

/** The id of a threat-flow report as people type it. @throws ExportError 'config' when it is none */
export function reportId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(id)) return id
  throw wrongUsage('Report ids are integers from 1 on', 'See `spillway report --help`.')
}

export function reportMarkdown(report: Report): string {
  const { id, title, subtitle, summary, highlights, content, tags } = report
  const blocks = [
    `# ${line(title || `Report ${id}`)}`,
    ...(subtitle ? [`*${line(subtitle)}*`] : []),
    metaLine(report),
    ...(summary ? [`## Summary\n\n${block(summary)}`] : []),
    ...(highlights?.length
      ? [`## Highlights\n\n${highlights.map((text) => `- ${line(text)}`).join('\n')}`]
      : []),
    ...(content ? [`## Report\n\n${block(content)}`] : []),
    ...(tags?.length ? [`Tags: ${tags.map(line).join(', ')}`] : []),
  ]
  return `${blocks.join('\n\n')}\n`
}

function metaLine({ id, format_type, published_at, updated_at, reading_time }: Report): string {
  const parts = [
    `Report ${id}`,
    ...(format_type ? [format_type] : []),
    ...(published_at ? [`published ${published_at}`] : []),
    ...(updated_at ? [`updated ${updated_at}`] : []),
    // The service does not say in which unit.
    ...(reading_time ? [`reading time ${reading_time}`] : []),
  ]
  return parts.map(line).join(' · ')
}

function line(text: string): string {
  return withoutMarkup(plainLine(text))
}

function block(text: string): string {
  return withoutMarkup(plainText(text).trim())
}

/** Escapes foreign Markdown by entities: a backslash could be undone by one before it. */
function withoutMarkup(markdown: string): string {
  return markdown
    .replace(/<(?=[A-Za-z/!?])/g, '&lt;')
    .replaceAll('![', '&#33;[')
    .replace(OTHER_LINK, (_, mark: string) => `]${mark === '(' ? '&#40;' : '&#58;'}`)
}

// `](` or `]:` before what may be `javascript:`, disguised by entities or by blanks that browsers take out.
const OTHER_LINK = /\]([(:])(?!\s*<?(?:https?:\/\/|mailto:))/gi
