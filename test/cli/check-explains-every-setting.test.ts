// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pipeline files refer to variables that way
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { accessTo, type Environment, sandboxWith, spillway, workFolder } from './spillway.ts'

const BASE = `service:
  base_url: \${SPILLWAY_BASE_URL}
  retries: \${RETRIES:-4}
extract:
  windows: { from: 2024-01-01, until: now, every: month }
`
const FILE = `extends: base.yaml
name: acme
extract:
  domains: [Bücher.example]
  queries:
    - { type: email, email: jane.doe@acme.com }
    - { type: secret, secret_env: LEAKED }
  max_requests: 7
transform: { secret: hmac, identity: hmac }
`

async function checked(...flags: string[]) {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  writeFileSync(join(folder, 'base.yaml'), BASE)
  writeFileSync(join(folder, 'acme.yaml'), FILE)
  writeFileSync(join(folder, 'key'), 'k'.repeat(40), { mode: 0o600 })
  const env: Environment = {
    ...accessTo(sandbox),
    SPILLWAY_MASK_KEY_FILE: join(folder, 'key'),
    LEAKED: 'correct horse',
  }
  const result = await spillway(['check', 'acme.yaml', '--concurrency', '2', ...flags], folder, env)
  return { ...result, env }
}

it('each value is shown with its source; of a secret only that it is set', async () => {
  const { code, stdout, stderr, env } = await checked('--all')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = stdout.replaceAll(/ {2,}/g, ' | ').split('\n')
  expect(lines).toEqual(
    expect.arrayContaining([
      'name | acme | acme.yaml:2:7',
      `service.base_url | ${env.SPILLWAY_BASE_URL} | \${SPILLWAY_BASE_URL} in base.yaml:2:13 (extended)`,
      'service.retries | 4 | ${RETRIES} in base.yaml:3:12 (extended)',
      'service.timeout | 60s | default',
      'extract.domains | [xn--bcher-kva.example] | acme.yaml:4:12',
      'extract.queries | [email (hidden by transform.identity), secret LEAKED] | acme.yaml:6:5',
      'extract.lag | 15m | default',
      'extract.page_size | auto | default',
      'extract.concurrency | 2 | --concurrency',
      'extract.max_requests | 7 | acme.yaml:8:17',
      'load.path | output/acme | default',
      'load.compression | snappy | default',
      'SPILLWAY_TOKEN | set | environment',
      'SPILLWAY_MASK_KEY | set | the file that SPILLWAY_MASK_KEY_FILE names',
      'LEAKED | set | environment',
    ]),
  )
  expect(stdout).not.toMatch(/jane|correct horse|kkkk/)
  expect(stdout).not.toContain(env.SPILLWAY_TOKEN)
  expect(stdout).not.toContain('load.csv')
})

it('without --all, settings that have their default are counted', async () => {
  const { code, stdout } = await checked()
  expect(code).toBe(0)
  expect(stdout).toMatch(/^extract\.max_requests +7 +acme\.yaml:8:17$/m)
  expect(stdout).toMatch(/^SPILLWAY_TOKEN +set +environment$/m)
  expect(stdout).not.toMatch(/ {2}default$/m)
  expect(stdout).toMatch(/^\d+ settings more at their defaults; --all shows them$/m)
})

it('--json has the same content', async () => {
  const { code, stdout } = await checked('--json')
  const report = JSON.parse(stdout)
  expect(code).toBe(0)
  expect(report).toMatchObject({ pipeline: 'acme', ok: true })
  expect(report.checks.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok])).toEqual([
    ['file', true],
    ['environment', true],
    ['data set', true],
    ['service', true],
  ])
  expect(report.settings).toContainEqual({
    key: 'service.retries',
    value: 4,
    from: { by: 'file', file: 'base.yaml', line: 3, column: 12, extended: true, variables: ['RETRIES'] },
  })
  expect(report.settings).toContainEqual({ key: 'load.format', value: 'parquet', from: { by: 'default' } })
  expect(report.secrets).toContainEqual({ variable: 'LEAKED', set: true, file_variable: null })
})
