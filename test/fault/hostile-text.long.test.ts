import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { startAttack } from './hostile-run.ts'
import { credential, type Exchange } from './hostile-service.ts'

/** What a terminal would obey: colours, titles, links, the clipboard, 8-bit controls, direction, line ends. */
const CONTROLS = [
  '\u001b[31mred\u001b[0m',
  '\u001b]0;title\u0007',
  '\u001b]8;;http://evil.example\u001b\\link',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u009b2J\u009d0;t\u009c\u0090q\u009c',
  '\b\b\b\f\v\r\u0000\u007f\u0085',
  '\u202egnirts\u2066\u2028line\u2029\u200f\ufeff\u{e0041}',
].join('|')

/** Characters of that kind that must not be printed. Line ends and tabs are allowed. */
const OBEYED = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

describe.concurrent.each(['pretty', 'json'])('with log format %s', (format) => {
  const logging = ['--log-level', 'debug', '--log-format', format]

  test('no control sequence from the service reaches the terminal', async () => {
    const domains = ['a', 'b', 'c', 'd'].map((name) => `${name}.example`)
    const { call, cli } = await startAttack(
      respondInColour,
      { service: { retries: 1 }, extract: { domains } },
      { testsTokens: true },
    )
    const json = format === 'json' ? ['--json'] : []
    const outcomes = [
      await call('check', ...logging),
      await call('run', ...json, ...logging),
      await call('status', ...json),
      await cli('report', '1', ...logging),
      await cli('report', '1', '2', '--format', 'json', ...logging),
    ]
    expect(outcomes.map(({ code }) => code)).toEqual([0, 1, 0, 0, 1])
    for (const { stdout, stderr } of outcomes) {
      expect(OBEYED.exec(stdout)?.[0]).toBeUndefined()
      expect(OBEYED.exec(stderr)?.[0]).toBeUndefined()
    }
    // The text around the controls is printed.
    expect(outcomes.map(({ stdout, stderr }) => stdout + stderr).join()).toMatch(/red.*title.*gnirts/s)
  })
})

function respondInColour({ method, path, body, json, number }: Exchange) {
  if (path === '/tokens/test') return json({ tenant_id: 1, scopes: [CONTROLS] })
  if (path.endsWith('/reports/1')) {
    return json({
      report: {
        id: 1,
        title: CONTROLS,
        subtitle: CONTROLS,
        content: CONTROLS,
        tags: [CONTROLS],
        [CONTROLS]: CONTROLS,
      },
    })
  }
  if (path.includes('/reports/')) return json({ error: { code: CONTROLS, message: CONTROLS } }, 404)
  // `check` requests whether the search path exists.
  if (method === 'GET') return json({ error: { code: CONTROLS, message: CONTROLS } }, 405)
  switch (body.query.fqdn) {
    case 'a.example':
      return json({ error: { code: CONTROLS, message: CONTROLS } }, 422)
    case 'b.example':
      return json({ detail: [{ loc: [CONTROLS], msg: CONTROLS, type: CONTROLS }] }, 500)
    case 'c.example':
      return json({ items: [credential(number, { [CONTROLS]: 1 })], next: body.from ? null : `c${CONTROLS}` })
    default:
      return json({ items: [credential(number, { [CONTROLS]: 1 }), CONTROLS, { [CONTROLS]: 1 }], next: null })
  }
}

describe.concurrent('names that look like paths', () => {
  test.each([
    ['a NUL', 'a\u0000b'],
    ['one that no file system takes', '漢'.repeat(250)],
  ])('%s is refused before anything is requested or written', async (_name, keyword) => {
    const hunt = await startAttack(({ json }) => json({ items: [], next: null }), {
      extract: { domains: undefined, queries: [{ type: 'keyword', keyword }] },
    })
    await exits(2, hunt.call('run'))
    expect(hunt.service.requests).toEqual([])
    expect(await readdir(hunt.folder)).toEqual(['pipeline.yaml'])
  })
})

test.each(['markdown', 'json'])('a report nested 100,000 deep does no harm as %s', async (format) => {
  const deep = '['.repeat(1e5) + ']'.repeat(1e5)
  const hunt = await startAttack(({ json }) => json(`{"report":{"id":1,"title":"A title","x":${deep}}}`))
  const { code, stdout, stderr } = await hunt.cli('report', '1', '--format', format)
  if (format === 'markdown') expect(stdout).toContain('A title')
  else expect(stderr).toContain('nested too deep')
  expect(code).toBe(format === 'markdown' ? 0 : 1)
})
