import { expect, it } from 'vitest'
import { reportMarkdown } from '../../src/cli/commands/report.ts'

const HTML = [
  ...['<script>alert(1)</script>', '<img src=https://tracker.example/x.png>', '<!-- hidden -->'],
  ...['<?php x ?>', '<svg/onload=a>', '\\<iframe src="//x.example">', '<\u200bb>'],
]
const IMAGES = [
  '![x](https://tracker.example/x.png)',
  '\\![x](https://tracker.example/x.png)',
  '![x][ref]',
  '!\u200b[x](//t)',
]

it('HTML in a report is escaped, and its images are not loaded', () => {
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

const OTHER_LINKS = [
  ...['[x](javascript:alert(1))', '[x](JaVaScRiPt:alert(1))', '[x](&#106;avascript:alert(1))'],
  ...['[x](javascript&colon;alert(1))', '[x]( \n javascript:alert(1))', '[x](< javascript:alert(1)>)'],
  ...['[x](\u200bjavascript:alert(1))', '[x](data:text/html,a)', '[x](vbscript:a)'],
  ...['[x](file:///etc/passwd)', '[x](//evil.example)', '[x]\n\n[x]: javascript:alert(1)'],
  ...['[x]\n\n  [x]:\n  javascript:alert(1)', '[x][y\nz]\n\n[y\nz]: <javascript:alert(1)>'],
]

it('links lead to the web or to a mailbox, and nowhere else', () => {
  for (const text of OTHER_LINKS) {
    const markdown = reportMarkdown({ id: 7, title: text, summary: text, content: text, highlights: [text] })
    expect(markdown, text).not.toMatch(/\](?:\(|:)/)
  }
  const good =
    '[a](https://example.com/b) [c](HTTP://example.com) [d](mailto:a@example.com)\n\n[e]: https://example.com'
  expect(reportMarkdown({ id: 7, content: good })).toContain(good)
})

it('everything else is unchanged', () => {
  const content = '## Heading\n\n- a < b, 1<2\n- [a link](https://example.com) **bold** `code`\n\n> quoted!'
  expect(reportMarkdown({ id: 7, content })).toContain(content)
})
