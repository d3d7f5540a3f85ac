import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkRequirements, readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure, problems, read, SMALLEST } from './pipeline-file.ts'

const BASE = `service:
  base_url: https://api.example.com/firework
  token_env: ACME_TOKEN
  retries: 20
extract:
  max_requests: 200
  include: [known_password_id, urls]
load:
  csv: { escape_formulas: true }
`
const CHILD = `extends: base.yaml
name: acme
service: { retries: 3 }
extract:
  domains: [acme.com]
  include: [auth_domains]
load: { format: csv }
`

test('mappings are merged, everything else is replaced, however many files there are', async () => {
  const files = {
    'low.yaml': BASE,
    'base.yaml': 'extends: low.yaml\nservice: { retries: 1, timeout: 10s }\n',
  }
  const { service, extract, load } = await read(CHILD, { files })
  expect(service).toMatchObject({
    baseUrl: 'https://api.example.com/firework',
    auth: { secretIn: 'ACME_TOKEN' },
    retries: 3,
    timeoutMs: 10_000,
  })
  expect(extract).toMatchObject({ include: ['auth_domains'], maxRequests: 200 })
  expect(load.format).toMatchObject({ kind: 'csv', escapeFormulas: true })
  const own = await read(CHILD.replace('service: { retries: 3 }\n', ''), { files })
  expect(own.service.retries).toBe(1)
})

test('a key without a value removes an inherited scalar', async () => {
  const text = CHILD.replace('{ retries: 3 }', '{ token_env: , api_key_env: KEY }')
  const { service } = await read(text, { files: { 'base.yaml': BASE } })
  expect(service.auth).toMatchObject({ kind: 'api-key', secretIn: 'KEY' })
})

test('a section or a list without a value keeps the inherited one', async () => {
  const base = `${BASE}transform: { secret: hmac, identity: hmac }\n`
  const text = `${CHILD.replace('include: [auth_domains]', 'include:')}transform:\n  # identity: keep\n`
  const { transform, extract } = await read(text, { files: { 'base.yaml': base } })
  expect(transform).toMatchObject({ secret: 'hmac', identity: 'hmac' })
  expect(extract.include).toEqual(['known_password_id', 'urls'])
  // Alone it says nothing.
  expect((await read(`${SMALLEST}transform:\n  # identity: drop\n`)).transform.identity).toBe('keep')
})

test('flags take precedence over both, and paths are relative to the file that has them', async () => {
  const cwd = scratchFolder()
  mkdirSync(join(cwd, 'shared/deep'), { recursive: true })
  writeFileSync(join(cwd, 'shared/base.yaml'), `extends: deep/base.yaml\n`)
  writeFileSync(
    join(cwd, 'shared/deep/base.yaml'),
    `${BASE}`.replace('extract:', 'extract:\n  domains_file: d.txt'),
  )
  writeFileSync(join(cwd, 'shared/deep/d.txt'), 'acme.org\n1.2.3.4\n')
  const text = CHILD.replace('base.yaml', 'shared/base.yaml')
  const overrides = { maxRequests: 7 }
  expect(await problems(text, { cwd, overrides })).toEqual([
    expect.stringMatching(
      /^shared\/deep\/d\.txt:2:1: expected a domain name .* found "1.2.3.4": an IP address/,
    ),
  ])
  writeFileSync(join(cwd, 'shared/deep/d.txt'), 'acme.org\n')
  const { extract } = await read(text, { cwd, overrides })
  expect(extract.queries).toHaveLength(2)
  expect(extract.maxRequests).toBe(7)
})

test('a problem is reported with its own file, line and column', async () => {
  const files = {
    'base.yaml': BASE.replace('retries: 20', 'retrys: 20').replace('200', 'many'),
    'late.yaml': 'extends: base.yaml\nload:\n  format: json\n  shard_rows: 0\n',
  }
  const text = CHILD.replace('base.yaml', 'late.yaml').replace('retries: 3', 'retries: -3')
  expect((await problems(text, { files })).map((line) => line.split(': ', 2).join(': '))).toEqual([
    'p.yaml:3:21: service.retries',
    'late.yaml:4:15: load.shard_rows',
    'base.yaml:4:3: service',
    'base.yaml:6:17: extract.max_requests',
  ])
})

test.each([
  ['base.yaml', 'found "base.yaml", which does not exist', {}],
  ['p.yaml', 'found "p.yaml", which extends itself', {}],
  ['a.yaml', 'found "p.yaml", which in the end extends itself', { 'a.yaml': 'extends: p.yaml\n' }],
  ['list.yaml', 'found "list.yaml", which holds no keys', { 'list.yaml': '- 1\n' }],
  ['[a.yaml, b.yaml]', 'expected the path of one pipeline file, found a list', {}],
  ["'${NOWHERE}'", 'the environment variable NOWHERE is not set', {}],
])('extends: %s: %s', async (named, message, files) => {
  const found = await problems(SMALLEST.replace('name:', `extends: ${named}\nname:`), { files })
  expect(found[0]).toContain(message)
  expect(found[0]).toMatch(/^(?:p|a)\.yaml:1:\d+: extends/)
})

test('an unset variable is reported at its reference in the base', async () => {
  const cwd = scratchFolder()
  writeFileSync(join(cwd, 'base.yaml'), BASE)
  writeFileSync(join(cwd, 'p.yaml'), CHILD)
  const pipeline = await readPipeline('p.yaml', { env: {}, cwd })
  const { message } = await failure(checkRequirements(pipeline, { env: {}, allowPlaintext: false }))
  expect(message).toContain(
    'base.yaml:3:3: service.token_env: the environment variable ACME_TOKEN is not set',
  )
})

test('anchors, merge keys and x- keys save repetition', async () => {
  const { service, extract } = await read(`x-service: &service
  retries: 20
  timeout: 30s
x-more: &more { timeout: 40s, token_env: MORE }
name: acme
service:
  retries: 5
  <<: [*service, *more]
  base_url: https://api.example.com/firework
extract:
  domains: &domains [acme.com]
  queries:
    - &one { type: domain, fqdn: acme.org }
    - { <<: *one, type: auth_domain }
`)
  expect(service).toMatchObject({ retries: 5, timeoutMs: 30_000, auth: { secretIn: 'MORE' } })
  expect(extract.queries).toHaveLength(3)
})

test('a merge key needs mappings, and problems point at the merged value', async () => {
  expect(await problems(`${SMALLEST}load:\n  <<: 7\n`)).toEqual([
    'p.yaml:7:7: <<: expected a mapping such as *name, or a list of them',
  ])
  expect(await problems(`x-load: &load\n  shard_rows: 0\n${SMALLEST}load: { <<: *load }\n`)).toEqual([
    expect.stringMatching(/^p\.yaml:2:15: load\.shard_rows: expected an integer/),
  ])
  expect(await problems(`${SMALLEST}load: { x-mine: 1, "<<": 1 }\n`)).toHaveLength(2)
  expect(await problems(`${SMALLEST}load:\n  !!str <<: 7\n`)).toEqual([
    'p.yaml:7:13: <<: expected a mapping such as *name, or a list of them',
  ])
})
