import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readMaskKey, readSecret } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure, read, withLine } from './pipeline-file.ts'

function secretFile(content: string | Uint8Array): string {
  const path = join(scratchFolder(), 'secret')
  writeFileSync(path, content)
  return path
}

test('from the variable, or else from the file that NAME_FILE names', async () => {
  expect(await readSecret('T', { T: ' tøken ' })).toBe(' tøken ')
  for (const end of ['\n', '\r\n', '\r']) {
    expect(await readSecret('T', { T: `token${end}` })).toBe('token')
    expect(await readSecret('T', { T_FILE: secretFile(`token${end}`) })).toBe('token')
  }
  expect(await readSecret('T', { T_FILE: secretFile(' to\nken\n\n') })).toBe(' to\nken\n')
  expect(await readSecret('T', { T: 'variable', T_FILE: secretFile('file') })).toBe('variable')
})

test('null when neither is set, or both are blank', async () => {
  expect(await readSecret('T', {})).toBeNull()
  expect(await readSecret('T', { T: '', T_FILE: '' })).toBeNull()
})

test('a file that cannot be read is an error that names the variable', async () => {
  const missing = join(scratchFolder(), 'none')
  expect((await failure(readSecret('T', { T_FILE: missing }))).message).toBe(
    `The file that T_FILE names does not exist (${missing}). Correct T_FILE, or set T itself.`,
  )
  const empty = secretFile('\n')
  expect((await failure(readSecret('T', { T_FILE: empty }))).message).toBe(
    `The file that T_FILE names is empty (${empty}). Correct T_FILE, or set T itself.`,
  )
  const binary = secretFile(Uint8Array.of(0xff, 0xfe))
  expect((await failure(readSecret('T', { T_FILE: binary }))).message).toContain('is not UTF-8 text')
})

test.each(['secret: hmac', 'identity: hmac'])('%s needs a key of 32 bytes', async (line) => {
  const pipeline = await read(withLine('transform', `${line}\n  mask_key_env: MY_KEY`))
  const key = 'ü'.repeat(16)
  expect(await readMaskKey(pipeline, { MY_KEY: key })).toEqual(new TextEncoder().encode(key))
  const short = await failure(readMaskKey(pipeline, { MY_KEY: `${'hunter2-'.repeat(4).slice(1)}\n\n` }))
  expect(short.message).toMatch(/^The masking key in MY_KEY has 31 bytes \(p\.yaml\)\. Set MY_KEY/)
  expect(short.message).not.toContain('hunter')
  const none = await failure(readMaskKey(pipeline, {}))
  expect(none.message).toMatch(
    /^The masking policy hmac needs a key, and MY_KEY is not set, or empty \(p\.yaml\)\. /,
  )
})

test('line breaks at the end of the masking key are ignored, from either source; all else is part of it', async () => {
  const pipeline = await read(withLine('transform', 'secret: hmac'))
  const key = 'correct horse battery staple, thirty-two and more'
  const bytes = new TextEncoder().encode(key)
  for (const end of ['', '\n', '\r\n', '\n\n', '\r\n\r\n', '\n\r', '\r', '\n'.repeat(1_000_000)]) {
    expect(await readMaskKey(pipeline, { SPILLWAY_MASK_KEY: key + end })).toEqual(bytes)
    const file = secretFile(key + end)
    expect(await readMaskKey(pipeline, { SPILLWAY_MASK_KEY_FILE: file })).toEqual(bytes)
  }
  for (const other of [`${key} `, ` ${key}`, `${key}\t`, `\n${key}`, `${key} \n`, key.replace(' ', '\n')]) {
    const text = other.replace(/\n$/, '')
    expect(await readMaskKey(pipeline, { SPILLWAY_MASK_KEY: other })).toEqual(new TextEncoder().encode(text))
  }
})

test.each([' '.repeat(40), '\t'.repeat(32), ` ${'\n'.repeat(40)} `, `${' \r\n\t\v\f'.repeat(20)}\n`])(
  'a masking key of blanks only is refused: %j',
  async (key) => {
    const pipeline = await read(withLine('transform', 'identity: hmac'))
    const { message } = await failure(readMaskKey(pipeline, { SPILLWAY_MASK_KEY: key }))
    expect(message).toMatch(/^The masking key in SPILLWAY_MASK_KEY consists of blanks only/)
  },
)
