import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Environment, warningsFor } from '../../src/config/index.ts'
import { problems, read, SMALLEST, temporaryFolder } from './pipeline-file.ts'

async function warnings(text: string, env: Environment = {}): Promise<string[]> {
  const cautions = await warningsFor(await read(text), env)
  return cautions.map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`)
}

test('one warning covers all domains that begin with www.', async () => {
  const four = ['www.alpha.test', 'www.beta.test', 'www.gamma.test', 'www.delta.test', 'wwwx.test']
  const [warning = '', ...more] = await warnings(SMALLEST.replace('acme.com', four.join(', ')))
  expect(more).toEqual([])
  expect(warning).toContain('www.alpha.test, www.beta.test, www.gamma.test and 1 more')
  expect(await warnings(SMALLEST)).toEqual([])
})

test('a secret that is set twice is warned of, with the one that is used', async () => {
  const file = join(temporaryFolder(), 'token')
  writeFileSync(file, 'from-the-file', { mode: 0o600 })
  const env = { SPILLWAY_TOKEN: 'from-the-variable', SPILLWAY_TOKEN_FILE: file }
  const [warning = '', ...more] = await warnings(SMALLEST, env)
  expect(more).toEqual([])
  expect(warning).toContain('SPILLWAY_TOKEN and SPILLWAY_TOKEN_FILE are both set: SPILLWAY_TOKEN is used')
  expect(warning).not.toMatch(/from-the/)
  expect(await warnings(SMALLEST, { SPILLWAY_TOKEN: 'one' })).toEqual([])
})

test('windows that make thousands of folders are warned of, with their number', async () => {
  const over = (every: string) =>
    `${SMALLEST}  windows: { from: 2024-01-01, until: 2024-07-01, every: ${every} }\n`
  const [warning = '', ...more] = await warnings(over('1h'))
  expect(more).toEqual([])
  expect(warning).toMatch(/extract\.windows\.every makes very many folders.*"windows":4368,"folders":4368/)
  for (const every of ['1d', '6h', 'week']) expect(await warnings(over(every))).toEqual([])
  expect(await warnings(`${over('1h')}load: { partition_by: query }\n`)).toEqual([])
})

test.each([
  ['day', '1d'],
  ['Daily', '1d'],
  ['7 days', '7d'],
  ['hours', '1h'],
  ['weekly', 'week'],
  ['1month', 'month'],
  ['3 months', null],
  ['fortnight', null],
])('of windows.every: %s, %s is suggested', async (every, meant) => {
  const [problem = ''] = await problems(`${SMALLEST}  windows: { from: 2024-01-01, every: ${every} }\n`)
  expect(problem).toContain(`expected <n>h, <n>d, week, month or year, found "${every}"`)
  expect(/did you mean `(.*)`/.exec(problem)?.[1] ?? null).toBe(meant)
})

test.each([
  ['transform: { secret: redacted }', 'redact'],
  ['load: { format: parket }', 'parquet'],
  ['load: { partition_by: [windows] }', 'window'],
  [`transform: { secret: \${SECRET_POLICY} }`, null],
])('%s: the word %s is suggested', async (line, meant) => {
  const [problem = ''] = await problems(`${SMALLEST}${line}\n`, { env: { SECRET_POLICY: 'redacted' } })
  expect(/did you mean `(.*)`/.exec(problem)?.[1] ?? null).toBe(meant)
})

test('a range that begins in the future is refused where it is set', async () => {
  const windows = '  windows: { from: 2099-01-01, until: now }\n'
  expect(await problems(`${SMALLEST}${windows}`)).toEqual([
    expect.stringMatching(/^p\.yaml:6:20: extract\.windows\.from: .*2099-01-01.* lies in the future/),
  ])
  const past = '  windows: { from: 2024-01-01, until: now }\n'
  const [problem] = await problems(`${SMALLEST}${past}`, { overrides: { from: '2099-01-01' } })
  expect(problem).toMatch(/^--from: .*2099-01-01.* lies in the future/)
})
