import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/core/index.ts'
import { eventually } from '../support/eventually.ts'
import { portOf } from '../support/listening.ts'
import { collect, domainChain, failure, fakeClock, open, pagesOf, sendPage, serve } from './support.ts'

describe('stopping', () => {
  it.each([
    ['stop', 'for a permit', 200],
    ['abort', 'after a 429', 429],
  ])('ends a wait (%s) %s', async (how, _when, status) => {
    const server = await serve((_request, response) => {
      if (status === 200) sendPage(response, 'a')
      else response.writeHead(status, { 'retry-after': '600' }).end()
    })
    const signal = new AbortController()
    const clock = fakeClock({ auto: false })
    const options = { clock, [how]: signal.signal, settings: { requestsPerSecond: 0.001 } }
    const run = failure(collect(open(server.url, options), domainChain()))
    await eventually(() => expect(clock.pending()).toHaveLength(1))
    signal.abort()
    expect((await run).kind).toBe('interrupted')
    expect(server.received).toHaveLength(1)
  })

  it('ends the machine’s own long waits, whatever its reason', async () => {
    const server = await serve((_request, response) => response.writeHead(429).end())
    const stop = new AbortController()
    const service = open(server.url, { clock: systemClock, stop: stop.signal })
    const run = failure(collect(service, domainChain()))
    await eventually(() => expect(service.counters.pausedUntilMs).not.toBeNull())
    stop.abort('a text')
    expect((await run).kind).toBe('interrupted')
  })

  it('ends the wait for a connection', async () => {
    // Accepts the connection, but sends no TLS.
    let connections = 0
    const server = createServer((socket) => {
      socket.on('error', () => {})
      connections++
    })
    const port = await portOf(server)
    const stop = new AbortController()
    const run = failure(collect(open(`https://127.0.0.1:${port}`, { stop: stop.signal }), domainChain()))
    await eventually(() => expect(connections).toBe(1))
    stop.abort()
    expect((await run).kind).toBe('interrupted')
  })

  it('lets a request in flight complete, and sends none after it', async () => {
    const held: ServerResponse[] = []
    const server = await serve((_request, response) => held.push(response))
    const stop = new AbortController()
    const pages = pagesOf(open(server.url, { stop: stop.signal }), domainChain())
    const first = pages.next()
    await eventually(() => expect(held).toHaveLength(1))
    stop.abort()
    sendPage(held[0]!, 'a')
    expect((await first).value?.page.next).toBe('a')
    expect((await failure(pages.next())).kind).toBe('interrupted')
    expect(server.received).toHaveLength(1)
  })

  it('retries no failed request', async () => {
    const held: ServerResponse[] = []
    const server = await serve((_request, response) => held.push(response))
    const stop = new AbortController()
    const run = failure(collect(open(server.url, { stop: stop.signal }), domainChain()))
    await eventually(() => expect(held).toHaveLength(1))
    stop.abort()
    held[0]!.writeHead(500).end()
    expect((await run).kind).toBe('interrupted')
    expect(server.received).toHaveLength(1)
  })
})

it.each([
  ['before the headers', (_response: ServerResponse) => {}],
  [
    'in the body',
    (response: ServerResponse) => void response.writeHead(200, { 'content-length': 9 }).write('{'),
  ],
])('an abort ends a request in flight, %s, and closes its connection', async (_name, respond) => {
  const closed = vi.fn()
  const server = await serve((_request, response) => {
    response.on('close', closed)
    respond(response)
  })
  const abort = new AbortController()
  const run = failure(collect(open(server.url, { abort: abort.signal }), domainChain()))
  await eventually(() => expect(server.received).toHaveLength(1))
  abort.abort()
  expect((await run).kind).toBe('interrupted')
  await eventually(() => expect(closed).toHaveBeenCalled())
  expect(server.received).toHaveLength(1)
})
