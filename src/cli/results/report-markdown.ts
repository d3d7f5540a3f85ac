import { plainLine, plainText } from '../terminal/plain-text.ts'

type Text = string | null | undefined
type Texts = readonly string[] | null | undefined

/** What is shown of a threat-flow report. Source: service spec 2.1. */
export type ReportFields = {
  readonly id: number
  readonly format_type?: Text
  readonly title?: Text
  readonly subtitle?: Text
  readonly summary?: Text
  readonly content?: Text
  readonly tags?: Texts
  readonly highlights?: Texts
  readonly published_at?: Text
  readonly updated_at?: Text
  readonly reading_time?: number | null | undefined
}

/** A report to read, as Markdown; what the report does not have is left out. */
export function reportMarkdown(report: ReportFields): string {
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

function metaLine({ id, format_type, published_at, updated_at, reading_time }: ReportFields): string {
  const facts = [
    `Report ${id}`,
    ...(format_type ? [format_type] : []),
    ...(published_at ? [`published ${published_at}`] : []),
    ...(updated_at ? [`updated ${updated_at}`] : []),
    // The service does not say in which unit.
    ...(reading_time ? [`reading time ${reading_time}`] : []),
  ]
  return facts.map(line).join(' · ')
}

function line(text: string): string {
  return withoutMarkup(plainLine(text))
}

function block(text: string): string {
  return withoutMarkup(plainText(text).trim())
}

/**
 * Markdown whose HTML is text, whose images are links, and whose links lead to the web or to a mailbox: a report is written
 * by others, and opening it must run and load nothing. Entities, since a backslash might be there already, and
 * undo another one.
 */
function withoutMarkup(markdown: string): string {
  return markdown
    .replace(/<(?=[A-Za-z/!?])/g, '&lt;')
    .replaceAll('![', '&#33;[')
    .replace(OTHER_LINK, (_, mark: string) => `]${mark === '(' ? '&#40;' : '&#58;'}`)
}

// `[text](address` and `[name]: address`. An address that does not begin like one of these may be `javascript:` in any
// disguise: renderers decode entities in it, and browsers take blanks out.
const OTHER_LINK = /\]([(:])(?!\s*<?(?:https?:\/\/|mailto:))/gi
