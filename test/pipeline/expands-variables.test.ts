import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { problems, read, SMALLEST, withLine } from './pipeline-file.ts'

const keyword = (text: string) =>
  `${SMALLEST.replace('  domains: [acme.com]\n', '')}  queries:\n    - { type: keyword, keyword: '${text}' }\n`

test.each([
  ['${A}', 'one'],
  ['<${A}-${B}>', '<one-two>'],
  ['${C:-three}', 'three'],
  ['${EMPTY:-four}', 'four'],
  ['${C:-a:-b}', 'a:-b'],
  ['$$${A}', '$${A}'],
  ['${NESTED}', '${A}'],
  ['$A {A} $', '$A {A} $'],
])('%s is %s', async (text, expected) => {
  const env = { A: 'one', B: 'two', EMPTY: '', NESTED: '${A}' }
  const { extract } = await read(keyword(text), { env })
  expect(extract.queries).toEqual([{ type: 'keyword', keyword: expected }])
})

test.each(['${A', '${}', '${1A}', '${A-b}', '${A:-${B}}'])('%s is malformed', async (text) => {
  expect(await problems(keyword(text), { env: { A: 'a', B: 'b' } })).toEqual([
    'p.yaml:6:33: extract.queries[0].keyword: malformed reference; write ${NAME} or ${NAME:-default}, and $${ for ${ itself',
  ])
})

test('an unset variable is reported with its location and with what to do', async () => {
  const text = SMALLEST.replace('https://api.example.com/firework', '${SPILLWAY_BASE_URL}')
  expect(await problems(text)).toEqual([
    'p.yaml:3:13: service.base_url: the environment variable SPILLWAY_BASE_URL is not set, or empty; set it, or give a default: ${SPILLWAY_BASE_URL:-default}',
  ])
  expect(await problems(keyword('${toString}'))).toHaveLength(1)
  expect(await problems(text, { env: { SPILLWAY_BASE_URL: '' } })).toEqual([
    expect.stringContaining('the environment variable SPILLWAY_BASE_URL is not set, or empty; set it'),
  ])
})

test('a value that is one reference is of the type that its place has, quoted or not, inside { } or not', async () => {
  const env = { RATE: '2.5', RETRIES: '3', YES: 'true', NONE: '', BYTES: '4096', NAME: '2024' }
  const { name, service, extract } = await read(
    `name: \${NAME}
service:
  base_url: http://api.example.com
  requests_per_second: \${RATE}
  retries: \${RETRIES}
  allow_http: \${YES}
  max_response_bytes: \${BYTES}
extract:
  domains: [acme.com]
  max_requests: \${NONE:-}
`,
    { env },
  )
  expect(name).toBe('2024')
  expect([service.requestsPerSecond, service.retries, service.maxResponseBytes]).toEqual([2.5, 3, 4096])
  expect(extract.maxRequests).toBe(500)
  for (const line of ['retries: "${RETRIES}"', "retries: '${RETRIES}'", 'retries: ${NONE:-3}'])
    expect((await read(withLine('service', line), { env })).service.retries, line).toBe(3)
  const inBraces = SMALLEST.replace(
    /service:\n {2}base_url: (.*)/,
    'service: { base_url: $1, retries: ${RETRIES}, timeout: ${NONE:-[1,2]} }',
  )
  expect(await problems(inBraces, { env })).toEqual([
    expect.stringMatching(/^p\.yaml:2:86: service\.timeout: expected a duration/),
  ])
  const fine = inBraces.replace('-[1,2]', '-9s')
  expect((await read(fine, { env })).service).toMatchObject({ retries: 3, timeoutMs: 9000 })
})

test('the value of a variable is always one string, and never YAML', async () => {
  const cwd = scratchFolder()
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string(),
        fc.constantFrom('a\nname: b', '[1, 2]', '*a', '"', '${B}'),
      ),
      async (value) => {
        try {
          const { name, extract } = await read(keyword('x${V}'), { cwd, env: { V: value } })
          expect(name).toBe('acme')
          expect(extract.queries).toEqual([{ type: 'keyword', keyword: `x${value}`.trim() }])
        } catch (error) {
          if (!isExportError(error, 'config')) throw error
          // Control characters and overlong strings are refused for what they are.
          expect(value === '' || value.includes('@') || /\p{Cc}/u.test(value) || value.length > 60).toBe(true)
        }
      },
    ),
    { numRuns: 200 },
  )
})
