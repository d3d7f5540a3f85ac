import { expect, it } from 'vitest'
import { reportMarkdown } from '../../src/cli/report-markdown.ts'

const HTML = [
  '<script>alert(1)</script>',
  '<img src=https://tracker.example/x.png>',
  '<!-- hidden -->',
  '<?php x ?>',
  '<svg/onload=a>',
  '\\<iframe src="//x.example">',
  '<\u200bb>',
]
const IMAGES = [
  '![x](https://tracker.example/x.png)',
  '\\![x](https://tracker.example/x.png)',
  '![x][ref]',
  '!\u200b[x](//t)',
]

it('HTML in a report is text, and its images are not loaded', () => {
  for (const text of [...HTML, ...IMAGES]) {
    const markdown = reportMarkdown({
      id: 7,
      title: text,
      subtitle: text,
      summary: `a\n\n${text}`,
      content: `a\n\n${text}\n`,
      highlights: [text],
      tags: [text],
      format_type: text,
      published_at: text,
    })
    expect(markdown, text).not.toMatch(/<[A-Za-z/!?]/)
    expect(markdown, text).not.toContain('![')
  }
})

it('everything else stays as it was written', () => {
  const content = '## Heading\n\n- a < b, 1<2\n- [a link](https://example.com) **bold** `code`\n\n> quoted!'
  expect(reportMarkdown({ id: 7, content })).toContain(content)
})
