import { expect, test } from 'vitest'
import { checkRequirements } from '../../src/pipeline/index.ts'
import { failure, problems, read, SMALLEST } from './pipeline-file.ts'

test.each([
  ['"a-token"', 'is in quotes'],
  ["'a-token'", 'is in quotes'],
  ['Bearer a-token', 'begins with Bearer'],
  ['Authorization: a-token', 'is a whole header'],
])('the token %s is refused: it %s', async (SPILLWAY_TOKEN, fault) => {
  const pipeline = await read(SMALLEST)
  const surroundings = { env: { SPILLWAY_TOKEN }, allowPlaintext: false }
  const { message } = await failure(checkRequirements(pipeline, surroundings))
  expect(message).toContain('SPILLWAY_TOKEN holds')
  expect(message).toContain(fault)
  expect(message).toContain('Set it to the token or key alone.')
  expect(message).not.toContain('a-token')
  expect(message).toContain('1 thing is missing or wrong')
})

test('a wrong flag is not reported as an error of the file', async () => {
  const dated = `${SMALLEST}  windows: { from: 2024-01-01, until: 2024-03-01 }\n`
  const { message } = await failure(read(dated, { overrides: { from: '2024-13-01' } }))
  expect(message).toMatch(/^The flags do not fit: 1 problem\. /)
  expect(message).toContain('\n--from: ')
  const both = await failure(read(`${dated}nonsense: 1\n`, { overrides: { from: '2024-13-01' } }))
  expect(both.message).toMatch(/^The pipeline cannot be read: 2 problems \(p\.yaml:7:1\)/)
})

// biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
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
