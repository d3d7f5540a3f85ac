import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { freshBuffers } from '../../src/core/index.ts'
import { type HttpClient, httpClient } from '../../src/http/http-client.ts'
import { serveRaw } from './support.ts'

const BODY = randomBytes(400_000)
// Whatever its first bytes, it may be a header block.
BODY.fill('HTTP/1.1 ', 100_000, 300_000)

/** A header block that takes several reads. */
const HEAD = `HTTP/1.1 200 OK\r\nx-first: one\r\nx-long: ${'l'.repeat(9000)}\r\nx-last: two\r\ncontent-length: ${BODY.length}\r\n\r\n`

it.each([
  ['as it comes', [HEAD.length]],
  ['in the middle of a name', [20, 3]],
  ['in the middle of a value', [40, 5000]],
  ['before its last byte', [HEAD.length - 1]],
  ['byte by byte', Array<number>(60).fill(1)],
])('headers and body are unchanged when they are split %s', async (_name, cuts) => {
  const server = await serveRaw((socket) => send(socket, [Buffer.from(HEAD), BODY], cuts))
  const client = open()
  for (let count = 0; count < 3; count++) {
    const { headers, body } = await request(client, server.url)
    expect(headers).toMatchObject({ 'x-first': 'one', 'x-long': 'l'.repeat(9000), 'x-last': 'two' })
    expect(Buffer.compare(body, BODY)).toBe(0)
  }
})

it('responses that come at the same time do not mix', async () => {
  const bodies = Array.from({ length: 8 }, () => randomBytes(1_000_000))
  const server = await serveRaw((socket, index) => {
    const head = `HTTP/1.1 200 OK\r\nx-index: ${index}\r\ncontent-length: ${bodies[index]!.length}\r\n\r\n`
    send(socket, [Buffer.from(head), bodies[index]!], [60_000, 60_000, 300_000])
  })
  const client = open()
  const responses = await Promise.all(bodies.map(() => request(client, server.url)))
  for (const { headers, body } of responses) {
    expect(Buffer.compare(body, bodies[Number(headers['x-index'])]!)).toBe(0)
  }
})

/** Sends bytes in chunks of the lengths given, and then the rest, so that each is read by itself. */
async function send(socket: Socket, parts: readonly Uint8Array[], lengths: readonly number[]): Promise<void> {
  socket.setNoDelay()
  const bytes = Buffer.concat(parts)
  let at = 0
  for (const length of lengths) {
    await new Promise((resolve) => socket.write(bytes.subarray(at, at + length), resolve))
    await new Promise((resolve) => setTimeout(resolve, 2))
    at += length
  }
  socket.write(bytes.subarray(at))
}

function open(): HttpClient {
  const client = httpClient({
    connections: 4,
    timeoutMs: 10_000,
    maxResponseBytes: 8 << 20,
    buffers: freshBuffers,
    keys: { address: 'service.base_url', timeout: null },
  })
  onTestFinished(() => client.close())
  return client
}

async function request(client: HttpClient, url: string) {
  const never = new AbortController().signal
  const signals = { signal: never, abort: never }
  const response = await client.send(
    { method: 'POST', url: new URL(url), headers: {}, body: '{}', where: 'here', ...signals },
    () => true,
  )
  return response!
}
