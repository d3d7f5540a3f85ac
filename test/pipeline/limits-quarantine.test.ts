import { expect, test } from 'vitest'
import { problems, withLine } from './pipeline-file.ts'

test.each(['-1', '0.5', '101%', '-1%', '1 %', '"%"', '1%%', '1e2%', 'none', '"5"', '.inf', 'true', '[1%]'])(
  '%s is no limit',
  async (text) => {
    const [problem] = await problems(withLine('transform', `max_quarantined: ${text}`))
    expect(problem).toMatch(
      /^p\.yaml:7:\d+: transform\.max_quarantined: expected an integer from 0 on, or a share from 0% to 100% such as 1% or 0\.5%, found /,
    )
  },
)
