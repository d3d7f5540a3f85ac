import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPipeline } from '../../src/config/index.ts'
import { isExportError } from '../../src/core/index.ts'
import { cases, seedOf } from '../support/thorough.ts'
import { edited, edits } from './fuzz-edits.ts'
import { runCli } from './support.ts'

const SEED = seedOf(20260301)
const TOKEN = 'a-token-that-no-message-may-show'

const VALID = `
name: acme-backfill
service:
  base_url: \${SPILLWAY_BASE_URL}
  token_env: SPILLWAY_TOKEN
  requests_per_second: 0.5
  timeout: 60s
  retries: 8
extract:
  domains: [scatterholt.com, "quillmere.net"]
  queries:
    - { type: email, email: a@scatterholt.com }
    - { type: secret, secret_env: LEAKED_PASSWORD }
    - { type: keyword, keyword: 'a b' }
  windows: { from: 2024-01-01, until: 2024-07-01, every: month }
  order: asc
  page_size: 10000
  include: [known_password_id]
  max_requests: 500
transform: { secret: hmac, identity: keep, columns: [id, domain, hash], on_invalid: quarantine }
load:
  format: parquet
  path: output/acme
  partition_by: [query, window]
  shard_rows: 1000000
  compression: snappy
  file_mode: '0640'
`

// biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of a pipeline file
const OTHER = '${OTHER}'

const WORDS = [
  ...': - [ ] { } & * ! | > \' " # % @ ` , ? ~ null true .inf 0x10 1e999 -1 1_000 <<'.split(' '),
  ...['&a [*a, *a]', '!!binary x', '!!js/function f', '*a', '---\n', '...\n', '\t', '\u0000', '\ufeff', '\r'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: references of a pipeline file
  ...['${SPILLWAY_TOKEN}', '${', '$${', '${X:-${Y}}', '${SPILLWAY_TOKEN:-x}'],
  ...[
    'plaintext',
    'zstd',
    'reports',
    'now',
    '99999d',
    '0s',
    '2024-02-30',
    '__proto__: 1\n',
    'constructor: {}\n',
  ],
]

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spillway-fuzz-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('every pipeline file is read, or refused with a message that says why', () => {
  test('valid files with random edits', async () => {
    await fc.assert(
      fc.asyncProperty(edits(WORDS), async (list) => {
        await expectReadOrRefused(edited(Buffer.from(VALID), list))
      }),
      { seed: SEED, numRuns: cases(1500) },
    )
  })

  test('environment values of any kind', async () => {
    const value = fc.oneof(
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom(...WORDS),
    )
    await fc.assert(
      fc.asyncProperty(value, value, async (baseUrl, other) => {
        const text = VALID.replace('output/acme', OTHER).replace('a b', OTHER)
        await expectReadOrRefused(Buffer.from(text), { SPILLWAY_BASE_URL: baseUrl, OTHER: other })
      }),
      { seed: SEED, numRuns: cases(500, 15) },
    )
  })

  test.each([
    ['aliases that multiply', bomb(10)],
    ['an alias of itself', 'name: &a [*a]\n'],
    ['brackets 100,000 deep', `name: ${'['.repeat(1e5)}`],
    ['braces 20,000 deep', `name: ${'{a: '.repeat(2e4)}${'}'.repeat(2e4)}`],
    ['blocks 2,000 deep', Array.from({ length: 2000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
    ['a megabyte of one word', `name: ${'a'.repeat(1e6)}`],
    ['a hundred thousand unknown keys', Array.from({ length: 1e5 }, (_, i) => `k${i}: 1`).join('\n')],
    ['nothing but zeros', '\u0000'.repeat(1000)],
  ])('%s', async (_name, text) => {
    await expectReadOrRefused(Buffer.from(text))
  })
})

async function expectReadOrRefused(bytes: Uint8Array, more: Readonly<Record<string, string>> = {}) {
  const file = join(folder, 'pipeline.yaml')
  await writeFile(file, bytes)
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework', SPILLWAY_TOKEN: TOKEN, ...more }
  try {
    await readPipeline(file, { env, cwd: folder })
  } catch (error) {
    if (!isExportError(error, 'config')) throw error
    expect(error.message).toContain('pipeline.yaml')
    expect(error.message).not.toContain(TOKEN)
    // A message does not list a hundred thousand mistakes.
    expect(error.message.length).toBeLessThan(20_000)
  }
}

function bomb(levels: number): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < levels; i++) lines.push(`a${i}: &a${i} [${Array(9).fill(`*a${i - 1}`)}]`)
  return `${lines.join('\n')}\nname: *a${levels - 1}\n`
}

test('the command ends with exit 0 or 2, without a stack trace, and writes nothing', async () => {
  const samples = fc.sample(edits(WORDS), { seed: SEED + 1, numRuns: cases(10, 4) })
  for (const list of samples) {
    const text = edited(Buffer.from(VALID.replace(/\n {4}- .*secret_env.*/, '')), list)
    await writeFile(join(folder, 'pipeline.yaml'), text)
    const { code, stdout, stderr } = await runCli({
      args: ['plan', 'pipeline.yaml', '--log-level', 'trace'],
      cwd: folder,
      env: { SPILLWAY_BASE_URL: 'https://api.example.com/firework', SPILLWAY_TOKEN: TOKEN },
    })
    expect([0, 2], stderr).toContain(code)
    expect(stdout + stderr).not.toMatch(/\n\s+at |unexpected error/)
    expect(stdout + stderr).not.toContain(TOKEN)
    expect(await readdir(folder)).toEqual(['pipeline.yaml'])
  }
})
