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

test('a range that begins in the future is refused where it is set', async () => {
  const windows = '  windows: { from: 2099-01-01, until: now }\n'
  expect(await problems(`${SMALLEST}${windows}`)).toEqual([
    expect.stringMatching(/^p\.yaml:6:20: extract\.windows\.from: .*2099-01-01.* lies in the future/),
  ])
  const past = '  windows: { from: 2024-01-01, until: now }\n'
  const [problem] = await problems(`${SMALLEST}${past}`, { overrides: { from: '2099-01-01' } })
  expect(problem).toMatch(/^--from: .*2099-01-01.* lies in the future/)
})
