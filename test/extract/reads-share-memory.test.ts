import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { type HttpResponse, httpClient } from '../../src/http/index.ts'
import { serveRaw } from './support.ts'

const BODY = randomBytes(700_000)
// Whatever it begins with, it may be a head.
BODY.fill('HTTP/1.1 ', 100_000, 200_000)
const LONG = 'l'.repeat(9000)
const HEAD = `HTTP/1.1 200 OK\r\nx-first: one\r\nx-long: ${LONG}\r\nx-last: two\r\ncontent-length: ${BODY.length}\r\n\r\n`

it.each([
  ['in the middle of a name', [20, 3]],
  ['in the middle of a value', [40, 5000]],
  ['before its last byte', [HEAD.length - 1]],
  ['byte by byte', Array<number>(60).fill(1)],
])('headers are what was sent when they are cut %s, and so is the body', async (_name, cuts) => {
  const server = await serveRaw((socket) => send(socket, HEAD, BODY, cuts))
  const ask = client()
  for (let count = 0; count < 3; count++) {
    const { headers, body, release } = await ask(server.url)
    expect(headers).toMatchObject({ 'x-first': 'one', 'x-long': LONG, 'x-last': 'two' })
    expect(Buffer.compare(body, BODY)).toBe(0)
    release()
  }
})

it('responses that come at the same time do not mix', async () => {
  const bodies = Array.from({ length: 8 }, () => randomBytes(1_000_000))
  const server = await serveRaw((socket, index) => {
    const head = `HTTP/1.1 200 OK\r\nx-index: ${index}\r\ncontent-length: ${bodies[index]!.length}\r\n\r\n`
    send(socket, head, bodies[index]!, [60_000, 60_000, 300_000])
  })
  const ask = client()
  const responses = await Promise.all(bodies.map(() => ask(server.url)))
  for (const { headers, body } of responses)
    expect(Buffer.compare(body, bodies[Number(headers['x-index'])]!)).toBe(0)
})

/** Sends pieces of these lengths, each of which is read by itself, and then the rest. */
async function send(socket: Socket, head: string, body: Uint8Array, lengths: readonly number[]) {
  socket.setNoDelay()
  const bytes = Buffer.concat([Buffer.from(head), body])
  let at = 0
  for (const length of lengths) {
    await new Promise((resolve) => socket.write(bytes.subarray(at, at + length), resolve))
    await new Promise((resolve) => setTimeout(resolve, 2))
    at += length
  }
  socket.write(bytes.subarray(at))
}

function client(): (url: string) => Promise<HttpResponse> {
  const keys = { address: 'service.base_url', timeout: null }
  const http = httpClient({ connections: 4, timeoutMs: 60_000, maxResponseBytes: 8 << 20, keys })
  onTestFinished(() => http.close())
  const never = new AbortController().signal
  return async (url) => {
    const request = { method: 'POST', url: new URL(url), headers: {}, body: '{}', where: 'here' } as const
    return (await http.send({ ...request, signal: never, abort: never }, () => true))!
  }
}
