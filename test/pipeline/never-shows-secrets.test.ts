import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LEFT_OUT, unlessSecret } from '../../src/core/index.ts'
import { learnSecrets, readSubmitted, submittedFile } from '../../src/pipeline/index.ts'
import { pipelineFile } from '../../src/pipeline/schema/file-schema.ts'
import { keysOf } from '../../src/pipeline/schema/key.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure, problems, read, SMALLEST, withLine } from './pipeline-file.ts'

const SECRET = 'correct-horse/battery'

const catalog = (uri: string, more: string) =>
  withLine('load', `{ table_formats: [iceberg], catalog: { uri: "${uri}", namespace: leaks, ${more} } }`)

test.each([
  withLine('service', `token: ${SECRET}`),
  withLine('service', `token_env: ${SECRET}`),
  withLine('service', 'token_env: 7355608 # correct'),
  SMALLEST.replace(/service:\n.*\n/, `service: ${SECRET}\n`),
  withLine('service', `search_path: "/x?token=${SECRET}"`),
  withLine('extract', `queries: [{ type: secret, secret: ${SECRET} }]`),
  withLine('extract', `queries: [{ type: secret, secret_env: ${SECRET} }]`),
  withLine('extract', `queries: [{ type: email, email: ${SECRET} }]`),
  withLine('extract', `queries: [{ type: keyword, keyword: "${SECRET}${'x'.repeat(300)}" }]`),
  catalog(`https://me:${SECRET}@c.example`, 'oauth2: {}'),
  catalog('/', `oauth2: { client_id_env: ${SECRET} }`),
  withLine('transform', `mask_key: ${SECRET}`),
  // What is no YAML.
  `${SMALLEST}x: "${SECRET}\n`,
  `${SMALLEST}${SECRET}\n`,
  `${SMALLEST}load: *${SECRET}\n`,
  `${SMALLEST}load: "\\q${SECRET}"\n`,
])('%j', async (text) => {
  const error = await failure(read(text))
  expect(error.message).not.toMatch(/correct|horse|battery|7355608/)
  expect(error.stack).not.toMatch(/correct|horse|battery|7355608/)
})

test('keys and signatures of Azure are known, also as a part of an address', async () => {
  await learnSecrets({
    AZURE_STORAGE_CONNECTION_STRING:
      'AccountName=acme;AccountKey=a2V5IG9mIGFuIGFjY291bnQ=;EndpointSuffix=core.test',
    AZURE_STORAGE_SAS_TOKEN: '?sv=2024-08-04&sr=c&sig=c2lnbmF0dXJl%2BZm9yIGFsbA%3D%3D&sp=r',
    AZURE_CLIENT_SECRET: 'client~of-acme.0815',
  })
  for (const text of [
    'GET https://acme.blob.test/c/x?sr=c&sig=c2lnbmF0dXJl%2BZm9yIGFsbA%3D%3D failed',
    'x-ms-copy-source: c2lnbmF0dXJl+Zm9yIGFsbA==',
    'key a2V5IG9mIGFuIGFjY291bnQ=',
    'client~of-acme.0815 is wrong',
  ])
    expect(unlessSecret(text, 'long')).toBe(LEFT_OUT)
})

test('a key for a secret is refused, with the key that names its variable', async () => {
  const [token = ''] = await problems(withLine('service', `token: ${SECRET}`))
  expect(token).toContain(
    'p.yaml:3:3: service: unknown key `token`; a secret is never written in the file: `token_env` names',
  )
  const secret = await problems(withLine('extract', `queries: [{ type: secret, secret: ${SECRET} }]`))
  expect(secret).toEqual([
    'p.yaml:5:29: extract.queries[0]: unknown key `secret`; a secret is never written in the file: `secret_env` names the environment variable that holds it; allowed: type, secret_env, as',
  ])
})

test('values of variables are not shown in any problem', async () => {
  const sections = keysOf(pipelineFile).filter(({ keys }) => keys !== null)
  const scalars = sections.map(
    ({ name, keys }) => `${name}:\n${keys!.map((key) => `  ${key.name}: \${V}\n`).join('')}`,
  )
  const text = `name: \${V}\n${scalars.join('')}  x: \${V}\n`
  const found = await problems(text, { env: { V: SECRET } })
  expect(found.length).toBeGreaterThan(35)
  expect(found.join('\n')).not.toMatch(/correct|horse|battery/)
  const listed = `${SMALLEST}transform: { columns: ["\${V}"] }\n`
  for (const text of [listed, listed.replace('transform:', '  include: ["${V}"]\ntransform:')]) {
    const inLists = await problems(text, { env: { V: SECRET } })
    expect(inLists.length).toBeGreaterThan(0)
    expect(inLists.join('\n')).not.toMatch(/correct|horse|battery/)
  }
})

test('of a submitted file the place is named, and nothing is quoted', async () => {
  const cwd = scratchFolder()
  const text = withLine('load', `format: ${SECRET}`)
  const readHere = async (files: Record<string, string>) => {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content)
    return failure(readSubmitted(await submittedFile('p.yaml', cwd), cwd, { env: {}, cwd }))
  }
  const { message } = await readHere({ 'p.yaml': text })
  expect(message).toContain(
    `1 problem (${join(cwd, 'p.yaml')}:7:11). Correct it: \`check\` says what is wrong`,
  )
  expect(message).not.toMatch(/correct|horse|battery/)
  const extending = await readHere({ 'p.yaml': 'extends: secret-name.yaml\n', 'secret-name.yaml': text })
  expect(extending.message).toContain(`1 problem (${join(cwd, 'p.yaml')}). `)
})

test('control and direction characters of the file do not reach the terminal', async () => {
  const [line = ''] = await problems(withLine('load', 'format: "\\e[31mred\\u202Eder\\n\\x9b"'))
  expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
})
