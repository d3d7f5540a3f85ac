// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pipeline files refer to variables that way
import { expect, test } from 'vitest'
import { type Environment, warningsFor } from '../../src/pipeline/index.ts'
import { problems, read, SMALLEST } from './pipeline-file.ts'

async function warnings(text: string, env: Environment = {}): Promise<readonly string[]> {
  return warningsFor(await read(text), env)
}

test.each([
  ['transform: { secret: redacted }', 'redact'],
  ['load: { format: parket }', 'parquet'],
  [`transform: { secret: \${SECRET_POLICY} }`, null],
])('%s: the word %s is suggested', async (line, meant) => {
  const [problem = ''] = await problems(`${SMALLEST}${line}\n`, { env: { SECRET_POLICY: 'redacted' } })
  expect(/did you mean `(.*)`/.exec(problem)?.[1] ?? null).toBe(meant)
})

test.each([
  ['base_url: https://api.example.com/x', 'base_url: $BASE_URL', 'a variable is written with braces, $'],
  ['base_url:', 'token_env: $MY_TOKEN\n  base_url:', 'write the name of the variable alone, without $'],
  ['extract:', 'load: { path: $HOME/out }\nextract:', 'would be made; write $'],
])('%s written as %s: %s', async (before, after, hint) => {
  const text = SMALLEST.replace(/base_url: \S+/, 'base_url: https://api.example.com/x').replace(before, after)
  const found = await problems(text)
  expect(found.join('\n')).toContain(hint)
  // It may be a password.
  if (!hint.includes('HOME')) expect(found.join('\n')).not.toMatch(/MY_TOKEN|\$BASE/)
})

test('a secret of a few characters is warned of without it, since messages that contain it are left out', async () => {
  const [warning = '', ...more] = await warnings(SMALLEST, { SPILLWAY_TOKEN: 'q7x' })
  expect(more).toEqual([])
  expect(warning).toContain('SPILLWAY_TOKEN holds fewer than 8 characters')
  expect(warning).not.toContain('q7x')
  expect(await warnings(SMALLEST, { SPILLWAY_TOKEN: 'q7x4b2m9' })).toEqual([])
})

test.each([
  ['load: { path: "out/${SPILLWAY_TOKEN}" }', 'load.path', 'SPILLWAY_TOKEN'],
  ['transform: { columns: [id, "${SPILLWAY_MASK_KEY}"] }', 'transform.columns[1]', 'SPILLWAY_MASK_KEY'],
])('a secret in another place is refused: %s', async (line, where, name) => {
  const found = await problems(`${SMALLEST}${line}\n`, { env: { [name]: 'domain' } })
  expect(found).toEqual([
    expect.stringContaining(`${where}: the variable ${name} holds a secret, as another key says`),
  ])
})

test('a range of addresses in NO_PROXY, which names hosts alone, is warned of', async () => {
  expect(await warnings(SMALLEST, { NO_PROXY: 'acme.com, 10.0.0.0/8' })).toEqual([
    'NO_PROXY: 10.0.0.0/8 is no host, and has no effect; name hosts, such as acme.com',
  ])
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
