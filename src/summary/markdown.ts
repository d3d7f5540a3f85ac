import { oneLine } from '../core/index.ts'
import { failuresOf, figuresOf, periodOf, reasonsOf, type SummaryInput, whoFailed } from './contents.ts'

const MAX_FAILURES = 20

export function summaryMarkdown(input: SummaryInput): string {
  const failures = failuresOf(input.manifest)
  const { verdict } = input
  const { headline, why, next } = verdict
  const period = periodOf(verdict)
  const reasons = [
    ...(why === '' ? [] : [why]),
    ...(next === '' ? [] : [next]),
    ...(period === null ? [] : [`covers ${period}`]),
    ...reasonsOf(verdict),
  ]
  const lines = [
    `## ${plain(input.manifest.pipeline)}: ${plain(headline)}`,
    '',
    ...reasons.map((reason) => `- ${plain(reason)}`),
    ...(reasons.length > 0 ? [''] : []),
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
