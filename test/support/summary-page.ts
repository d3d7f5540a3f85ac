import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RowFacts } from '../../src/summary/index.ts'

const textOf = (html: string): string =>
  html
    .replace(/<br>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .trim()

export function readSummaryPage(output: string): Promise<string> {
  return readFile(join(output, '_report.html'), 'utf8')
}

/** What the summary page of a data set says, read as a person would. */
export async function summaryPageIn(output: string) {
  const html = await readSummaryPage(output)
  const all = (pattern: RegExp, within = html): RegExpExecArray[] => [...within.matchAll(pattern)]
  const section = (id: string): string =>
    new RegExp(`<section[^>]*><h2 id="${id}".*?</section>`, 's').exec(html)?.[0] ?? ''
  const [, rows] = /<script type="application\/json" id="rows">(.*?)<\/script>/s.exec(html) ?? []
  const lines = all(/<tr>(<th scope="row".*?)<\/tr>/gs, section('heat'))
  return {
    html,
    heading: textOf(/<div class="verdict[^>]*><p>(.*?)<\/p>/.exec(html)![1]!),
    why: textOf(/<p class="why">(.*?)<\/p>/.exec(html)?.[1] ?? ''),
    next: textOf(/<p class="next">(.*?)<\/p>/.exec(html)?.[1] ?? ''),
    reasons: all(/<li>(.*?)<\/li>/g, /<ul class="reasons">.*?<\/ul>/s.exec(html)?.[0] ?? '').map(([, text]) =>
      textOf(text!),
    ),
    figures: Object.fromEntries(
      all(/<li><b>(.*?)<\/b>(.*?)<\/li>/g).map(([, value, name]) => [name!, value!]),
    ),
    /** The cells of each query, with the total last if there are several. */
    heat: Object.fromEntries(
      lines.map(([, line]) => {
        const [name, ...cells] = all(/<t[hd][^>]*>(.*?)<\/t[hd]>/g, line!).map(([, text]) => textOf(text!))
        return [name!, cells]
      }),
    ),
    failures: all(/<li>(.*?)<\/li>/g, section('failed')).map(([, text]) => textOf(text!)),
    facts: rows === undefined ? null : (JSON.parse(rows) as RowFacts),
  }
}
