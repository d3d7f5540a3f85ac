import { expect, test } from 'vitest'
import { ExportError } from '../../src/core/index.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { credential, response } from './credentials.ts'
import { decodeSettings, pageContext } from './plans.ts'

const decode = (body: string | Buffer) => createDecoder(decodeSettings())(Buffer.from(body), pageContext())

test('an invalid response may be requested again, and is not quoted', () => {
  const wrong = [
    ...['', ' ', '<html>sunflower-42</html>', 'null', '"sunflower-42"', '[{"hash":"sunflower-42"}]'],
    ...['{"items":{"hash":"sunflower-42"},"next":null}', '{"items":null}', '{"next":null}'],
    ...['{"items":[],"items":[]}', '{"next":"a","items":[],"n\\u0065xt":null}'],
    ...['{"items":[],"next":7}', '{"items":[],"next":["sunflower-42"]}'],
    ...['{"items":[],"next":null} sunflower-42', `${response([credential()]).toString().slice(0, -1)}`],
    `{"items":[${JSON.stringify(credential())},sunflower-42]}`,
  ]
  for (const body of wrong) {
    const error = errorOf(() => decode(body))
    const kind = isJson(body) ? 'shape' : 'transient'
    expect(error).toMatchObject({ kind, where: 'domain.scatterholt.com/all, page 4' })
    expect(String(error.stack) + String(error.cause)).not.toContain('sunflower-42')
  }
})

test('a page without next is the last, and a byte order mark is ignored', () => {
  expect(decode('{"items":[]}')).toMatchObject({ next: null, rows: 0 })
  expect(decode('\ufeff{"items":[],"next":"a\\u0062"}')).toMatchObject({ next: 'ab' })
})

test('a response with invalid UTF-8 may be requested again, at any offset', () => {
  const places = { domain: 'a?b', source_id: 'a?b', unknown: 'a?b', 'a?b': 1, hash: `${'x'.repeat(5000)}a?b` }
  for (const [name, value] of Object.entries(places)) {
    // A byte that never occurs, half a character, a surrogate, and an overlong encoding.
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
      const [before, after] = response([credential({ [name]: value })])
        .toString()
        .split('a?b')
      const body = Buffer.concat([Buffer.from(`${before}a`), Buffer.from(bytes), Buffer.from(`b${after}`)])
      expect(errorOf(() => decode(body))).toMatchObject({
        kind: 'transient',
        what: 'The response is no UTF-8',
      })
    }
  }
})

function errorOf(run: () => unknown): ExportError {
  try {
    run()
  } catch (error) {
    if (error instanceof ExportError) return error
  }
  throw new Error('no ExportError was thrown')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
