import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { afterEach, expect, it, vi } from 'vitest'
import { CERTIFICATE_PATH } from '../e2e/support/proxy.ts'
import { portOf } from '../support/listening.ts'
import { collect, domainChain, failure, open, sendPage, serve } from './support.ts'

/** It signs itself. */
const certificate = readFileSync(CERTIFICATE_PATH)

afterEach(() => {
  vi.unstubAllEnvs()
})

it.each([301, 302, 303, 307, 308])('a redirect is an error, never followed: %i', async (status) => {
  const other = await serve((_request, response) => sendPage(response, null))
  const server = await serve((_request, response) =>
    response.writeHead(status, { location: `${other.url}/v4/credentials/global/_search` }).end(),
  )
  const error = await failure(collect(open(server.url), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toContain(`responded with ${status}`)
  expect(error.message).toContain('Redirects are not followed')
  expect(other.received).toHaveLength(0)
  expect(server.received).toHaveLength(1)
})

it('an untrusted certificate is rejected, whatever the environment says', async () => {
  let requests = 0
  const server = createServer({ key: certificate, cert: certificate }, (_request, response) => {
    requests++
    sendPage(response, null)
  })
  const port = await portOf(server)
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const error = await failure(collect(open(`https://127.0.0.1:${port}`), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toMatch(/certificate of \S+ is not accepted/)
  expect(requests).toBe(0)
})
