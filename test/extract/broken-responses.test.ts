import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { PageSizes } from '../../src/extract/index.ts'
import {
  collect,
  domainChain,
  emptyPage,
  failure,
  fakeClock,
  open,
  sendPage,
  serve,
  serveRaw,
} from './support.ts'

const PAGE = '{"items":[1],"next":null}'
const WHOLE = `HTTP/1.1 200 OK\r\ncontent-length: ${PAGE.length}\r\n\r\n${PAGE}`

/** Some faults, then a good response: the page comes with the request after them, which is of the same size. */
async function recovers(fault: (socket: Socket) => void, faults: number): Promise<void> {
  const server = await serveRaw((socket, index) => (index < faults ? fault(socket) : socket.write(WHOLE)))
  const service = open(server.url, { clock: fakeClock(), settings: { timeoutMs: TIMEOUT_MS } })
  const sizes = new PageSizes(80, { limit: null, bindsSizes: false })
  expect(await collect(service, domainChain({ pageSize: 80, sizes }))).toMatchObject([
    { requests: faults + 1, size: 80 },
  ])
  expect(service.counters).toMatchObject({ requests: faults + 1, retries: faults })
}

const TIMEOUT_MS = 10_000

/**
 * The same for a late response: while its connection is open, time passes a tenth of the time-out at a time. No time
 * passes during the good response, however busy the machine is.
 */
async function recoversFromLate(
  fault: (socket: Socket) => void,
  meanwhile: (socket: Socket) => void = () => {},
): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await recovers((socket) => {
    fault(socket)
    const time = setInterval(() => {
      vi.advanceTimersByTime(TIMEOUT_MS / 10)
      meanwhile(socket)
    }, 5)
    socket.on('close', () => clearInterval(time))
  }, 1)
}

describe('a request is sent again', () => {
  const compressed = (socket: Socket, body: Buffer): void => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`)
    socket.write(body)
  }
  const reset = (socket: Socket): void => void socket.resetAndDestroy()
  const end = (socket: Socket): void => void socket.end()
  const sends =
    (text: string, then: (socket: Socket) => void = () => {}) =>
    (socket: Socket): void =>
      void socket.write(`HTTP/1.1 200 OK\r\n${text}`, () => then(socket))
  const flipped = gzipSync(PAGE).map((byte, at) => (at === 12 ? byte ^ 1 : byte)) as Buffer
  it.each<[string, (socket: Socket) => void]>([
    ['the connection is reset before the headers', reset],
    ['the connection is closed before the headers', end],
    ['the connection is reset within the headers', sends('conte', reset)],
    ['the connection is reset after the headers', sends('content-length: 100\r\n\r\n{', reset)],
    ['the body is shorter than announced', sends(`content-length: 100\r\n\r\n${PAGE}`, end)],
    ['a chunked body ends too early', sends(`transfer-encoding: chunked\r\n\r\n19\r\n${PAGE}\r\n`, end)],
    ['a compressed body is cut short', (socket) => compressed(socket, gzipSync(PAGE).subarray(0, -10))],
    ['a compressed body has a wrong byte', (socket) => compressed(socket, flipped)],
    ['the response is not HTTP', (socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
    ['the response has no end of headers', sends(`x: ${'x'.repeat(100_000)}`)],
    // After the second time a page that is late is requested in half: these say nothing of its size.
  ])('when %s', (_name, fault) => recovers(fault, 2))

  it('when no response begins in time', () => recoversFromLate(() => {}))

  it('when the response stalls', () =>
    recoversFromLate((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{')))

  it('when the response drips: every byte in time, the whole too late', () =>
    recoversFromLate(
      (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n'),
      (socket) => socket.write(' '),
    ))
})

it.each([
  ['ends with its connection', `HTTP/1.1 200 OK\r\n\r\n${PAGE}`],
  ['follows an interim one', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${WHOLE}`],
])('a response that %s is complete', async (_name, response) => {
  const server = await serveRaw((socket) => socket.end(response))
  expect(await collect(open(server.url), domainChain())).toMatchObject([{ requests: 1, page: { items: 1 } }])
})

it('the cause is named when the name is unknown', async () => {
  const service = open('http://no-such-host.invalid', { settings: { retries: 0 } })
  const error = await failure(collect(service, domainChain()))
  expect(error.kind).toBe('transient')
  expect(error.message).toMatch(/The name no-such-host\.invalid .* \((?:ENOTFOUND|EAI_AGAIN)\)/)
})

it('the wait for a connection ends in time where the server accepts it and says no more', async () => {
  const silent = await serveRaw(() => {})
  const url = silent.url.replace('http:', 'https:')
  const service = open(url, { settings: { retries: 0, timeoutMs: 300 } })
  const error = await failure(collect(service, domainChain()))
  expect(error).toMatchObject({ kind: 'transient', what: expect.stringContaining('was made in time') })
})

it('the error of the HTTP parser contains no bytes of the response', async () => {
  const server = await serveRaw((socket) =>
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: hunter2\r\n\r\n'),
  )
  const error = await failure(collect(open(server.url, { settings: { retries: 0 } }), domainChain()))
  const { inspect } = await import('node:util')
  expect(inspect(error, { depth: 20 })).not.toContain('hunter2')
})

describe('a body', () => {
  it.each([
    ['plain, announced', {}, Buffer.alloc(100_001), true],
    ['plain, unannounced', {}, Buffer.alloc(100_001), false],
    ['compressed', { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(100_001)), true],
    ['compressed a thousandfold', { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(100_000_000)), true],
  ])('larger than allowed is rejected, without a retry: %s', async (_name, headers, body, announced) => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { ...headers, ...(announced ? { 'content-length': body.length } : {}) })
      if (!announced) response.write(body.subarray(0, 10))
      response.end(announced ? body : body.subarray(10))
    })
    const service = open(server.url, { settings: { maxResponseBytes: 100_000 } })
    const error = await failure(collect(service, domainChain()))
    expect(error.kind).toBe('data')
    expect(error.message).toContain('100000 bytes')
    expect(server.received).toHaveLength(1)
  })

  it.each([
    ['plain', {}, (body: Buffer) => body],
    ['compressed', { 'content-encoding': 'gzip' }, gzipSync],
  ])('as large as allowed is accepted: %s', async (_name, headers, encode) => {
    const text = `${' '.repeat(100_000 - PAGE.length)}${PAGE}`
    for (const chunked of [true, false]) {
      const server = await serve((_request, response) => {
        const body = encode(Buffer.from(text))
        response.writeHead(200, { ...headers, ...(chunked ? {} : { 'content-length': body.length }) })
        for (let at = 0; at < body.length; at += 7_001) response.write(body.subarray(at, at + 7_001))
        response.end()
      })
      const service = open(server.url, { settings: { maxResponseBytes: 100_000 } })
      await collect(service, domainChain(), async (body) => {
        expect(Buffer.from(body).toString()).toBe(text)
        return emptyPage({})
      })
    }
  })

  it('in an unknown compression is rejected', async () => {
    const server = await serve((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'br' }).end(PAGE),
    )
    expect((await failure(collect(open(server.url), domainChain()))).kind).toBe('data')
    expect(server.received).toHaveLength(1)
  })
})

it('connections are reused, and no more are opened than allowed', async () => {
  const connections = new Set<Socket>()
  const server = await serve((_request, response, index) => {
    if (response.socket !== null) connections.add(response.socket)
    sendPage(response, index < 30 ? `c${index}` : null)
  })
  const service = open(server.url, { limits: { connections: 2 } })
  await Promise.all([1, 2, 3, 4].map(() => collect(service, domainChain())))
  expect(connections.size).toBe(2)
})

it('https to an http server fails at once and names the cause', async () => {
  const server = await serve((_request, response) => response.end('{}'))
  const service = open(server.url.replace('http:', 'https:'))
  const error = await failure(collect(service, domainChain()))
  expect(error).toMatchObject({ kind: 'config' })
  expect(error.what).toContain('does not use TLS')
  expect(service.counters.retries).toBe(0)
})

it('a time-out after the run was told to stop is an interruption, not a failure', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const stop = new AbortController()
  const server = await serve(() => {
    stop.abort()
    vi.advanceTimersByTime(10_000)
  })
  const service = open(server.url, { stop: stop.signal, settings: { retries: 0, timeoutMs: 10_000 } })
  expect(await failure(collect(service, domainChain()))).toMatchObject({ kind: 'interrupted' })
})
