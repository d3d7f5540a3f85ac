import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
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

// How such files are read: test/pipeline/survives-any-input.
test('the command ends with exit 0 or 2, without a stack trace, and writes nothing', async () => {
  const folder = scratchFolder()
  const samples = fc.sample(edits(WORDS), { seed: SEED, numRuns: cases(10, 4) })
  for (const list of samples) {
    const text = edited(Buffer.from(VALID), list)
    await writeFile(join(folder, 'pipeline.yaml'), text)
    const { code, stdout, stderr } = await runCli({
      args: ['plan', 'pipeline.yaml', '--log-level', 'debug'],
      cwd: folder,
      env: { SPILLWAY_BASE_URL: 'https://api.example.com/firework', SPILLWAY_TOKEN: TOKEN },
    })
    expect([0, 2], stderr).toContain(code)
    expect(stdout + stderr).not.toMatch(/\n\s+at |unexpected error/)
    expect(stdout + stderr).not.toContain(TOKEN)
    expect(await readdir(folder)).toEqual(['pipeline.yaml'])
  }
})
