import { plainLine, plainText } from './plain-text.ts'

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
    `# ${plainLine(title || `Report ${id}`)}`,
    ...(subtitle ? [`*${plainLine(subtitle)}*`] : []),
    metaLine(report),
    ...(summary ? [`## Summary\n\n${plainText(summary).trim()}`] : []),
    ...(highlights?.length
      ? [`## Highlights\n\n${highlights.map((text) => `- ${plainLine(text)}`).join('\n')}`]
      : []),
    ...(content ? [`## Report\n\n${plainText(content).trim()}`] : []),
    ...(tags?.length ? [`Tags: ${tags.map(plainLine).join(', ')}`] : []),
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
  return facts.map(plainLine).join(' · ')
}
