import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkRequirements, readPlace } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure, problems, read, SMALLEST } from './pipeline-file.ts'

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

const SECRET_PATHS = [
  ['load: { path: "out/${SPILLWAY_TOKEN}" }', 'load.path', 'SPILLWAY_TOKEN'],
  ['transform: { columns: [id, "${SPILLWAY_MASK_KEY}"] }', 'transform.columns[1]', 'SPILLWAY_MASK_KEY'],
  // Named by another key, also by a variable; and read where no key names it.
  ['load: { path: "out/${OURS}" }\ntransform: { mask_key_env: OURS }', 'load.path', 'OURS'],
  ['load: { path: "out/${OURS}" }\ntransform: { mask_key_env: "${NAME}" }', 'load.path', 'OURS'],
  ['load: { path: "out/${AWS_SECRET_ACCESS_KEY}" }', 'load.path', 'AWS_SECRET_ACCESS_KEY'],
] as const

test.each(SECRET_PATHS)('a secret in another place is refused: %s', async (line, where, name) => {
  const env = { [name]: 'domain', NAME: 'OURS' }
  const says = expect.stringContaining(`${where}: the variable ${name} holds a secret`)
  expect(await problems(`${SMALLEST}${line}\n`, { env })).toEqual([says])
})

test('a secret in the place of a data set is refused also where only the place counts', async () => {
  const text = SMALLEST.replace('base_url:', 'token_env: OURS\n  base_url:')
  const cwd = scratchFolder()
  writeFileSync(join(cwd, 'p.yaml'), `${text}load: { path: "out/\${OURS}" }\n`)
  const place = readPlace('p.yaml', { env: { OURS: 'a-token' }, cwd })
  expect((await failure(place)).message).toContain('load.path: the variable OURS holds a secret')
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

test.each(['"a-token"', "'a-token'", 'Bearer a-token', 'Authorization: a-token'])(
  'the token %s is refused',
  async (SPILLWAY_TOKEN) => {
    const pipeline = await read(SMALLEST)
    const surroundings = { env: { SPILLWAY_TOKEN }, allowPlaintext: false }
    const { message } = await failure(checkRequirements(pipeline, surroundings))
    expect(message).toContain('SPILLWAY_TOKEN holds')
    expect(message).toContain('is in quotes, or begins with Bearer or Authorization')
    expect(message).toContain('Set it to the token or key alone.')
    expect(message).not.toContain('a-token')
    expect(message).toContain('1 thing is missing or wrong')
  },
)

test('a wrong flag is not reported as an error of the file', async () => {
  const dated = `${SMALLEST}  windows: { from: 2024-01-01, until: 2024-03-01 }\n`
  const { message } = await failure(read(dated, { overrides: { from: '2024-13-01' } }))
  expect(message).toMatch(/^The flags do not fit: 1 problem\. /)
  expect(message).toContain('\n--from: ')
  const both = await failure(read(`${dated}nonsense: 1\n`, { overrides: { from: '2024-13-01' } }))
  expect(both.message).toMatch(/^The pipeline cannot be read: 2 problems \(p\.yaml:7:1\)/)
})

const REFERENCE = '${X}'

test.each([
  [3, `name: a\nservice:\n\tbase_url: ${REFERENCE}\nextract:\n\tdomains: [a.com]\n`],
  [5, 'name: a\nservice: { base_url: "https://a.example" }\nextract:\n  domains:\n\t- a.com\n'],
  [
    7,
    'name: a\nservice: { base_url: "https://a.example" }\nextract:\n  domains: [a.com]\n  windows:\n    from: 2024-01-01\n\tuntil: now\n',
  ],
])('a tab is reported at its line, %i', async (line, text) => {
  const found = await problems(text)
  expect(found[0]).toMatch(
    new RegExp(`^p\\.yaml:${line}:\\d+: not valid YAML: tabs cannot indent; use spaces$`),
  )
  expect(found.join()).not.toContain('{ }')
})
