import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import type { PipelineParts } from '../support/workspace.ts'
import { attack, startAttack } from './hostile-run.ts'
import { credential, type Exchange } from './hostile-service.ts'

// A run without rows needs some 130 MB of resident memory.
const MODEST_MB = 400

describe.concurrent('a service that sends too much is disconnected, with flat memory:', () => {
  const floods: readonly (readonly [
    string,
    NonNullable<PipelineParts['service']>,
    (exchange: Exchange) => void,
  ])[] = [
    ['an endless body', { max_response_bytes: '8MB' }, ({ response }) => pour(response.writeHead(200))],
    [
      'a gzip bomb in an error',
      { max_response_bytes: '32MB' },
      ({ response }) => void response.writeHead(503, { 'content-encoding': 'gzip' }).end(BOMB),
    ],
    [
      'endless preliminary responses',
      { timeout: '1s' },
      ({ response }) => every(response.socket!, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
    ],
    [
      'more small values than memory can hold',
      {},
      ({ response }) => void response.writeHead(200).end(`{"items":[${'[],'.repeat(2e7)}0],"next":null}`),
    ],
    [
      'more items than a request can ask for',
      {},
      ({ response }) => void response.writeHead(200).end(`{"items":[${'0,'.repeat(2e5)}0],"next":null}`),
    ],
  ]
  test.each(floods)('%s', async (name, service, respond) => {
    const { stderr, peakMb, requests } = await exits(1, attack(respond, { service }, { watched: true }))
    expect(stderr).toMatch(/acme\.example/)
    expect(stderr).not.toMatch(NOT_FORESEEN)
    expect(peakMb).toBeLessThan(MODEST_MB)
    // After a timeout the page size is halved, from 10,000 down to 10. No other failure is retried.
    expect(requests).toBe(name.includes('preliminary') ? 11 : 1)
  })
})

test('sixteen concurrent responses of 15 MB of small values take no more memory than documented', async () => {
  const body = `{"items":[${'{},'.repeat(5e6)}{}],"next":null}`
  const domains = Array.from({ length: 16 }, (_, i) => `d${i}.acme.example`)
  const { stderr, peakMb } = await exits(
    1,
    attack(
      ({ response }) => void response.writeHead(200).end(body),
      { extract: { concurrency: 16, domains } },
      { watched: true },
    ),
  )
  expect(stderr).toContain('The response holds more values than a page can have')
  // As the page on the architecture says: the responses, memory for the next ones (32 MB each), and Node.js itself.
  expect(peakMb).toBeLessThan(16 * (15 + 32) + 50)
})

/** Ten members, each larger than a response may be. */
const BOMB = Buffer.concat(Array(10).fill(gzipSync(Buffer.alloc(40_000_000, 0x20))))
const NOT_FORESEEN = /unexpected error|\n\s+at /

type Sink = NodeJS.WritableStream & { readonly destroyed: boolean }

function pour(sink: Sink): void {
  const spaces = Buffer.alloc(1 << 16, 0x20)
  while (!sink.destroyed && sink.write(spaces));
  if (!sink.destroyed) sink.once('drain', () => pour(sink))
}

/** Sends a string again and again until the other side disconnects. */
function every(socket: Sink, chunk: string): void {
  socket.on('error', () => {})
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer)
    else socket.write(chunk.repeat(10))
  }, 5)
}

describe.concurrent('JSON that is valid but unusual', () => {
  const EXPORTED = { rows: 1, quarantined: 0 }
  const QUARANTINED = { rows: 0, quarantined: 1 }
  const unusual: readonly (readonly [string, object, () => string])[] = [
    ['items nested 100,000 deep', QUARANTINED, () => nested(1e5)],
    ['an unknown field nested 100,000 deep', EXPORTED, () => itemWith(`"x":${nested(1e5)}`)],
    ['a secret nested 100,000 deep', QUARANTINED, () => itemWith(`"hash":${nested(1e5)}`)],
    [
      'a great many unknown fields',
      EXPORTED,
      () => itemWith(Array.from({ length: 1e6 }, (_, i) => `"f${i}":0`).join()),
    ],
    ['a string of megabytes', EXPORTED, () => itemWith(`"domain":${JSON.stringify('\u00e9"'.repeat(1e7))}`)],
    [
      'an item with more long numbers than fit into memory',
      QUARANTINED,
      () => itemWith(`"domain":[${Array(5e5).fill('1234567890123456789').join()}]`),
    ],
  ]
  test.each(unusual)('%s: each item is exported or quarantined', async (_name, counts, items) => {
    const body = pageJson(items())
    const { stderr, stdout } = await exits(
      0,
      attack(({ json }) => json(body)),
    )
    expect(stderr).not.toMatch(NOT_FORESEEN)
    expect(JSON.parse(stdout)).toMatchObject(counts)
  })

  test('ever new field names do not accumulate', async () => {
    const pages = 60
    const { code, stderr, stdout } = await attack(({ json, number }) => {
      const extra = Array.from({ length: 50 }, (_, i) => `"f${number}_${i}":0`).join()
      json(pageJson(itemWith(extra, number), number < pages ? `c${number}` : null))
    })
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ rows: pages })
    expect(stderr.split('\n').length).toBeLessThan(1100)
  })
})

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

function pageJson(items: string, next: string | null = null): string {
  return `{"items":${items},"next":${JSON.stringify(next)}}`
}

/** A list of one credential with some more fields, or the same once more. */
function itemWith(fields: string, id = 1): string {
  return `[${JSON.stringify(credential(id)).slice(0, -1)},${fields}}]`
}

test('cursors that repeat in a cycle over several runs end the chain', async () => {
  const { call, service } = await startAttack(({ json, body, number }) => {
    const offset = Number(body.from?.slice(1) ?? 0)
    json({ items: [credential(number)], next: `c${(offset % 9) + 1}` })
  })
  for (const code of [4, 4, 1]) await exits(code, call('run', '--max-requests', '4'))
  expect(service.requests).toHaveLength(10)
})
