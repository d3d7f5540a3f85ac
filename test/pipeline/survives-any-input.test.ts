import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import type { Environment } from '../../src/pipeline/index.ts'
import { edited, edits } from '../fault/fuzz-edits.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { cases } from '../support/thorough.ts'
import { read, SMALLEST } from './pipeline-file.ts'

const TOKEN = 'a-token-that-no-message-may-show'
const FOLDER = join(import.meta.dirname, '../../pipelines')
const VALID = [
  SMALLEST,
  ...['starter', 'demo', 'compliance', 'backfill'].map((name) =>
    readFileSync(join(FOLDER, `${name}.yaml`), 'utf8'),
  ),
]

const TOKENS = [
  ...'name service extract transform load base_url domains queries windows from type secret'.split(' '),
  ...'columns csv format acme https://a.example 2024-01-01 now 1 -1 0x1f 1e400 .nan true null ~'.split(' '),
  ...'${A} ${ $${ ${A:-1} ${SPILLWAY_TOKEN} __proto__ toString : [ ] { } *a " \' # 😀 \\x4'.split(' '),
  ...[': ', '- ', '? ', ', ', '&a ', '!t ', '!!str ', '!!binary ', '!!set ', '| ', '> ', '<<: ', '\t', '\0'],
  ...['\n', '\n  ', '\n    ', '---\n', '...\n', '%YAML 1.1\n', '\u2028', '\uFEFF'],
]

const scrap = fc.array(fc.constantFrom(...TOKENS), { maxLength: 40 }).map((tokens) => tokens.join(''))

const mutated = fc
  .tuple(fc.constantFrom(...VALID), edits(TOKENS))
  .map(([text, list]) => edited(Buffer.from(text), list))

/** A pipeline that can be serialized, or one error of the kind `config`. */
async function parsesOrRejects(
  text: string | Uint8Array,
  cwd = scratchFolder(),
  more: Environment = {},
): Promise<void> {
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com', SPILLWAY_TOKEN: TOKEN, A: 'x: [1', ...more }
  try {
    const pipeline = await read(text, { cwd, env, files: { 'backfill-domains.txt': 'acme.com\n' } })
    expect(JSON.parse(JSON.stringify(pipeline))).toEqual(pipeline)
  } catch (error) {
    if (!isExportError(error, 'config')) throw error
    expect(error.message).toMatch(/\n(?:p\.yaml:\d+:\d+|[^:]+:\d+:1): .|^The pipeline file is not UTF-8/)
    expect(error.message).not.toContain(TOKEN)
    // A message does not list a hundred thousand mistakes.
    expect(error.message.length).toBeLessThan(20_000)
  }
}

test.each([
  ['scraps of YAML', scrap, cases(500, 60)],
  ['mutated pipelines', mutated, cases(1500, 70)],
  ['arbitrary bytes', fc.uint8Array({ maxLength: 200 }), cases(100, 30)],
])('%s are a pipeline or a config error', async (_, texts: fc.Arbitrary<string | Uint8Array>, numRuns) => {
  const cwd = scratchFolder()
  await fc.assert(
    fc.asyncProperty(texts, (text) => parsesOrRejects(text, cwd)),
    { numRuns },
  )
})

test('so are values of variables', async () => {
  const cwd = scratchFolder()
  const text = `${SMALLEST.replace(/https:.*/, '${SPILLWAY_BASE_URL}')}load: { path: "\${A}" }\n`
  const value = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.constantFrom(...TOKENS),
  )
  await fc.assert(
    fc.asyncProperty(value, value, (url, A) => parsesOrRejects(text, cwd, { SPILLWAY_BASE_URL: url, A })),
    { numRuns: cases(500, 15) },
  )
})

test.each([
  ['braces 20,000 deep', `name: ${'{a: '.repeat(2e4)}${'}'.repeat(2e4)}`],
  ['blocks 2,000 deep', Array.from({ length: 2000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
  ['a megabyte of one word', `name: ${'a'.repeat(1e6)}`],
  ['a hundred thousand unknown keys', Array.from({ length: 1e5 }, (_, i) => `k${i}: 1`).join('\n')],
  ['nothing but zeros', '\u0000'.repeat(1000)],
])('so are %s', (_, text) => parsesOrRejects(text))
