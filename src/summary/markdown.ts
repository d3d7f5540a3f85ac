import { oneLine } from '../core/index.ts'
import { failuresOf, figuresOf, reasonsOf, type SummaryInput, verdictOf, whoFailed } from './contents.ts'

const MAX_FAILURES = 20

export function summaryMarkdown(input: SummaryInput): string {
  const failures = failuresOf(input.manifest)
  const lines = [
    `## ${plain(input.manifest.pipeline)}: ${plain(verdictOf(input).replace('complete', 'Complete'))}`,
    '',
    ...reasonsOf(input).map((reason) => `- ${plain(reason)}`),
    ...(reasonsOf(input).length > 0 ? [''] : []),
    '| figure | |',
    '|---|--:|',
    ...figuresOf(input).map(([name, value]) => `| ${name} | ${value} |`),
  ]
  if (failures.length > 0) {
    lines.push('', '| what failed | why | what next |', '|---|---|---|')
    for (const group of failures.slice(0, MAX_FAILURES))
      lines.push(`| ${plain(whoFailed(group))} | ${plain(group.cause)} | ${plain(group.next)} |`)
    if (failures.length > MAX_FAILURES) lines.push('', `${failures.length - MAX_FAILURES} more causes.`)
  }
  return lines.join('\n')
}

/** Text that Markdown takes for nothing else. */
function plain(text: string): string {
  return oneLine(text).replace(/[\\`*_[\]<>|#&~]/g, '\\$&')
}
