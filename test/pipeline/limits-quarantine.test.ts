import { expect, test } from 'vitest'
import { problems, read, withLine } from './pipeline-file.ts'

const limit = (text: string) => withLine('transform', `max_quarantined: ${text}`)

test.each([
  ['0', { kind: 'count', items: 0 }],
  ['2500', { kind: 'count', items: 2500 }],
  ['0%', { kind: 'share', percent: 0 }],
  ['1%', { kind: 'share', percent: 1 }],
  ['0.25%', { kind: 'share', percent: 0.25 }],
  ['100%', { kind: 'share', percent: 100 }],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
  ['${LIMIT}', { kind: 'count', items: 7 }],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
  ['${SHARE}', { kind: 'share', percent: 7 }],
])('%s is a limit', async (text, expected) => {
  const { transform } = await read(limit(text), { env: { LIMIT: '7', SHARE: '7%' } })
  expect(transform.maxQuarantined).toEqual(expected)
})

test.each(['-1', '0.5', '101%', '-1%', '1 %', '"%"', '1%%', '1e2%', 'none', '"5"', '.inf', 'true', '[1%]'])(
  '%s is no limit',
  async (text) => {
    const [problem] = await problems(limit(text))
    expect(problem).toMatch(
      /^p\.yaml:7:\d+: transform\.max_quarantined: expected an integer from 0 on, or a share from 0% to 100% such as 1% or 0\.5%, found /,
    )
  },
)
