import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { ExportError, learnSecret, plainError } from '../../src/core/index.ts'
import { chainOf, collect, domainChain, failure, open, sendJson, serve } from './support.ts'

async function errorOf(respond: (response: ServerResponse) => void): Promise<ExportError> {
  const server = await serve((_request, response) => respond(response))
  return failure(collect(open(server.url), domainChain()))
}

const errorFor = (body: unknown, status = 400): Promise<ExportError> =>
  errorOf((response) => sendJson(response, body, { status }))

/** All of it that is kept or handed on has the status and a code alone; a terminal shows the text, too. */
function expectQuoted(error: ExportError, code: string, said: string): void {
  expect(error.what).toMatch(new RegExp(`responded with \\d+${code}$`))
  expect(error.onTerminal).toBe(`${error.message}${said === '' ? '' : ` The response says: ${said}`}`)
  if (said !== '') expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(said)
  expect(new ExportError({ ...plainError(error), cause: error }).onTerminal).toBe(error.onTerminal)
}

describe('an error quotes the service', () => {
  const WHERE =
    /\(POST http:\/\/127\.0\.0\.1:\d+\/v4\/credentials\/global\/_search, domain\.acme\.example\/2024-07-01\.\.2024-08-01, page 1\)/
  const FIELDS = [
    { loc: ['body', 'query', 'fqdn'], msg: 'field required', type: 'missing', input: 'private' },
    { loc: ['body', 'include', 0], msg: 'unknown value', type: 'enum' },
  ]

  it.each([
    [400, { error: { code: 'BAD_QUERY', message: 'no domain', data: { a: 1 } } }, ': BAD_QUERY', 'no domain'],
    [400, { error: { code: 'Bad query', message: 'no domain' } }, '', 'Bad query: no domain'],
    [400, { error: { code: 'SUMMER2024', message: '' } }, '', 'SUMMER2024'],
    [422, { detail: FIELDS }, '', 'body.query.fqdn: field required; body.include.0: unknown value'],
    [404, { detail: 'Not Found' }, '', 'Not Found'],
    [422, { error: 'no domain' }, '', 'no domain'],
    [422, { message: 'no domain' }, '', 'no domain'],
    // Of any other shape.
    [400, { error: { code: 7 } }, '', ''],
    [400, { detail: [{ loc: 'body' }] }, '', ''],
    [400, null, '', ''],
  ])(
    'as code and message, as a list of fields, as one sentence, or not: %i %j',
    async (status, body, code, said) => {
      const error = await errorFor(body, status)
      expect(error.what).toContain(`responded with ${status}`)
      expectQuoted(error, code, said)
      // Nothing is promised that stderr does not show.
      expect(error.next.includes('stderr')).toBe(said !== '')
      expect(error.message).toMatch(WHERE)
    },
  )

  it.each([
    ['text/html', 'oops'],
    ['application/octet-stream', '<!doctype html>oops'],
  ])('but not an HTML page: %s', async (contentType, body) => {
    const error = await errorOf((response) =>
      response.writeHead(400, { 'content-type': contentType }).end(body),
    )
    expectQuoted(error, ' and an HTML page', '')
  })

  it.each([
    ['decompressed', 'gzip', gzipSync('{"detail":"Not this"}'), 'Not this'],
    ['by its status, if that is broken', 'gzip', '{"detail":"Not this"}', ''],
    ['by its status, if that is unknown', 'br', '{"detail":"Not this"}', ''],
  ])('a compressed one %s', async (_name, coding, body, said) => {
    const error = await errorOf((response) =>
      response.writeHead(400, { 'content-encoding': coding }).end(body),
    )
    expectQuoted(error, '', said)
  })

  it('on one line, without control characters, truncated', async () => {
    const nasty = `a\u001b[31m\r\nb\u0000\u202ec\u2028${'d'.repeat(5000)}`
    const message = (await errorFor({ error: { code: 'X', message: nasty } })).onTerminal
    expect(message).toContain('X: a [31m b c d')
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u)
    expect(message.length).toBeLessThan(700)
  })

  it('of an endless body: only its beginning is received', async () => {
    const error = await errorOf((response) => {
      response.writeHead(400)
      const chunk = Buffer.alloc(65_536, 'x')
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', more)
      more()
    })
    expectQuoted(error, '', '')
  })
})

describe('while a query is held whose value must not be shown, nothing is quoted but a code', () => {
  const LEFT_OUT = '[left out: the run holds a query whose value must not be shown]'
  const TEXT = 'no match for c0rrect h0rse'

  it.each([
    [{ error: { code: 'BAD_SECRET', message: TEXT } }, ': BAD_SECRET', LEFT_OUT],
    [{ error: { code: TEXT, message: TEXT } }, '', LEFT_OUT],
    [{ error: { code: 'C'.repeat(65) } }, '', LEFT_OUT],
    // In hex.
    [{ error: { code: 'F09F98803230323461' } }, '', LEFT_OUT],
    [{ detail: [{ loc: ['body', TEXT], msg: TEXT }] }, '', LEFT_OUT],
    [{ [TEXT]: TEXT }, '', ''],
  ])('%j', async (body, code, said) => {
    learnSecret('😀2024a')
    const server = await serve((_request, response) =>
      sendJson(response, body, { status: 400, headers: { 'x-echo': TEXT, 'content-language': TEXT } }),
    )
    const logged: unknown[] = []
    const service = open(server.url, { hidesTexts: true, log: (...line) => logged.push(line) })
    const query = { type: 'secret', secretEnv: 'LEAKED' } as const
    const error = await failure(collect(service, chainOf(query, { secret: 'another' })))
    expectQuoted(error, code, said)
    expect(inspect([error, error.onTerminal, logged], { depth: 20 })).not.toContain('h0rse')
  })

  it('nor what a token permits', async () => {
    const server = await serve((_request, response) => sendJson(response, { scopes: [TEXT], tenant_id: 1 }))
    const info = await open(server.url, { hidesTexts: true }).testToken('/tokens/test')
    expect(info).toMatchObject({ tenantId: 1, scopes: [LEFT_OUT] })
  })
})

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJ0ZW5hbnQiOjF9.c2lnbmF0dXJl'

// In all of its forms: test/core/known-secrets.
it('a token or key that the service echoes is left out, such as its UTF-8 bytes in hex', async () => {
  const written = Buffer.from(TOKEN).toString('hex')
  const server = await serve((_request, response) =>
    sendJson(response, { error: { code: 'DENIED', message: `invalid: ${written}.` } }, { status: 400 }),
  )
  const logged: unknown[] = []
  const service = open(server.url, { secrets: { TOKEN }, log: (...line) => logged.push(line) })
  const error = await failure(collect(service, domainChain()))
  expectQuoted(error, ': DENIED', '[left out: it repeats a secret]')
  expect(inspect([error, error.onTerminal, logged], { depth: 20 })).not.toContain('invalid')
})
