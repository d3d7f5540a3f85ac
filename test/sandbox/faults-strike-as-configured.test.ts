import { once } from 'node:events'
import { createConnection } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Fault, Sandbox } from '../support/sandbox.ts'
import { get, post, SEARCH, sandboxWith } from './client.ts'

const query = { type: 'domain', fqdn: 'quillmere.net' }
const body = { query, size: 100 }

/** Status and body of one search, or how it failed. */
async function outcome(sandbox: Sandbox): Promise<string> {
  try {
    const response = await post(sandbox, body)
    const text = await response.text().catch(() => null)
    if (text === null) return `${response.status} cut`
    const json = attempt(() => JSON.parse(text) as { items?: unknown[] })
    return `${response.status} ${json === null ? 'no json' : json.items ? 'items' : 'other json'}`
  } catch {
    return 'no response'
  }
}

function attempt<T>(action: () => T): T | null {
  try {
    return action()
  } catch {
    return null
  }
}

// What a client notices first depends on how the bytes happened to arrive: a reset may overtake them, and
// bytes beyond the announced length may count as a broken connection.
const looseEnds = new Set<Fault['kind']>(['reset-mid-body', 'wrong-content-length'])

test.each<[Fault, string]>([
  [{ kind: 'reset', requests: [2] }, 'no response'],
  [{ kind: 'reset-mid-body', requests: [2] }, '200 cut'],
  [{ kind: 'truncate', requests: [2] }, '200 cut'],
  [{ kind: 'wrong-content-length', requests: [2], by: 10 }, '200 cut'],
  [{ kind: 'wrong-content-length', requests: [2], by: -10 }, '200 no json'],
  [{ kind: 'html', requests: [2] }, '502 no json'],
  [{ kind: 'invalid-json', requests: [2] }, '200 no json'],
  [{ kind: 'wrong-shape', requests: [2] }, '200 other json'],
  [{ kind: 'rewrite', requests: [2], rewrite: () => '[]' }, '200 other json'],
  [{ kind: 'status', status: 500, requests: [2] }, '500 other json'],
  [{ kind: 'status', status: 429, requests: [2] }, '429 other json'],
  [{ kind: 'drip', requests: [2], bytes: 20_000, everyMs: 1 }, '200 items'],
])('%o strikes the second request only', async (fault, wanted) => {
  const sandbox = await sandboxWith({ faults: [fault] })
  expect([await outcome(sandbox), await outcome(sandbox), await outcome(sandbox)]).toEqual([
    '200 items',
    looseEnds.has(fault.kind) ? expect.stringMatching(/no json|cut|no response/) : wanted,
    '200 items',
  ])
  expect(sandbox.requests.map((request) => request.fault)).toEqual([null, fault.kind, null])
})

test.each<[Fault['kind'], string]>([
  ['stall', 'half of the body'],
  ['hang', 'nothing'],
])('%s sends %s and keeps the connection open', async (kind) => {
  const sandbox = await sandboxWith({ faults: [{ kind } as Fault] })
  const text = JSON.stringify(body)
  const socket = createConnection(Number(new URL(sandbox.origin).port), '127.0.0.1')
  const closed = once(socket, 'close')
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk
  })
  socket.write(
    `POST ${SEARCH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${sandbox.token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
  /** How many bytes the response announces, and how many of them have come. */
  const sizes = (): readonly number[] => {
    const [head = '', ...rest] = received.split('\r\n\r\n')
    return [Number(/content-length: (\d+)/i.exec(head)?.[1]), rest.join('\r\n\r\n').length]
  }
  const isSent = (): boolean => {
    const [announced = Number.NaN, came = 0] = sizes()
    return kind === 'hang' ? sandbox.requests[0]?.fault === kind : came >= Math.floor(announced / 2)
  }
  await expect.poll(isSent).toBe(true)
  // More of the response would come before this one's.
  expect((await get(sandbox, '/tokens/test')).status).toBe(200)
  expect(socket.readyState).toBe('open')
  // Then nothing more can come.
  await sandbox.close()
  await closed
  if (kind === 'hang') expect(received).toBe('')
  else {
    const [announced = 0, came] = sizes()
    expect(announced).toBeGreaterThan(20_000)
    expect(came).toBe(Math.floor(announced / 2))
  }
})

test('Retry-After comes as seconds or as a date, and a fault can be a redirect', async () => {
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT'
  const sandbox = await sandboxWith({
    faults: [
      { kind: 'status', status: 429, retryAfter: '2', requests: [1] },
      { kind: 'status', status: 503, retryAfter: () => date, requests: [2] },
      { kind: 'status', status: 307, headers: { location: '/elsewhere' }, requests: [3] },
    ],
  })
  const first = await post(sandbox, body)
  expect(first.headers.get('retry-after')).toBe('2')
  expect(await first.json()).toMatchObject({ error: { code: 'RATELIMIT_REACHED' } })
  expect((await post(sandbox, body)).headers.get('retry-after')).toBe(date)
  expect((await post(sandbox, body)).url).toBe(`${sandbox.origin}/elsewhere`)
})

test('faults by rate strike the same requests for the same seed, and stop after a number of times', async () => {
  const strikes = async (fault: Partial<Fault>) => {
    const fault500 = { kind: 'status', status: 500, ...fault } as Fault
    const sandbox = await sandboxWith({ records: 1, faults: [fault500] })
    const statuses: number[] = []
    for (let i = 0; i < 60; i++) statuses.push((await post(sandbox, body)).status)
    return statuses
  }
  const one = await strikes({ rate: 0.3 })
  expect(await strikes({ rate: 0.3 })).toEqual(one)
  const struck = one.filter((status) => status === 500).length
  expect(struck).toBeGreaterThan(5)
  expect(struck).toBeLessThan(35)
  expect((await strikes({ times: 3 })).filter((status) => status === 500)).toHaveLength(3)
})

test('a fault can depend on the request, and strike other kinds of requests', async () => {
  const sandbox = await sandboxWith({
    faults: [
      { kind: 'status', status: 500, when: (request) => (request.body as { size: number }).size === 7 },
      { kind: 'status', status: 503, on: 'reports', requests: [1] },
    ],
  })
  expect((await post(sandbox, { query, size: 7 })).status).toBe(500)
  expect((await post(sandbox, { query, size: 8 })).status).toBe(200)
  expect((await get(sandbox, '/firework/v4/threat_flow/reports/1')).status).toBe(503)
  expect((await get(sandbox, '/firework/v4/threat_flow/reports/1')).status).toBe(200)
})

test('tokens can be revoked in the middle of a run', async () => {
  const sandbox = await sandboxWith({ faults: [{ kind: 'revoke-tokens', requests: [2] }] })
  expect(await outcome(sandbox)).toBe('200 items')
  expect(await outcome(sandbox)).toBe('401 other json')
  expect(await outcome(sandbox)).toBe('401 other json')
})

test('gzip is sent to those who accept it, when switched on', async () => {
  const sandbox = await sandboxWith({ gzip: true })
  const response = await post(sandbox, body)
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(((await response.json()) as { items: unknown[] }).items).toHaveLength(100)
  const plain = await post(sandbox, body, SEARCH, { 'accept-encoding': 'identity' })
  expect(plain.headers.get('content-encoding')).toBeNull()
})

test('closing ends open requests at once', async () => {
  const sandbox = await sandboxWith({ latencyMs: 60_000 })
  const pending = outcome(sandbox)
  await expect.poll(() => sandbox.requests.length).toBe(1)
  await sandbox.close()
  expect(await pending).toBe('no response')
  await sandbox.close()
})

test('latency can be drawn from a range', async () => {
  const sandbox = await sandboxWith({ latencyMs: [20, 30] })
  const started = performance.now()
  await outcome(sandbox)
  expect(performance.now() - started).toBeGreaterThan(18)
})

test('many delayed responses cause no warning of Node.js', async () => {
  const warnings: string[] = []
  const warned = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const sandbox = await sandboxWith({ latencyMs: 200, requestsPerSecond: 0 })
  await Promise.all(Array.from({ length: 20 }, () => outcome(sandbox)))
  expect(warnings).toEqual([])
})
