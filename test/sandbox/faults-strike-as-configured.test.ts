import { expect, onTestFinished, test } from 'vitest'
import { type Fault, type Sandbox, startSandbox } from '../support/sandbox.ts'
import { post, SEARCH } from './client.ts'

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
  const sandbox = await startSandbox({ faults: [fault] })
  expect([await outcome(sandbox), await outcome(sandbox), await outcome(sandbox)]).toEqual([
    '200 items',
    looseEnds.has(fault.kind) ? expect.stringMatching(/no json|cut|no response/) : wanted,
    '200 items',
  ])
  expect(sandbox.requests.map((request) => request.fault)).toEqual([null, fault.kind, null])
})

test('faults by rate strike the same requests for the same seed, and stop after a number of times', async () => {
  const strikes = async (fault: Partial<Fault>) => {
    const fault500 = { kind: 'status', status: 500, ...fault } as Fault
    const sandbox = await startSandbox({ records: 1, faults: [fault500] })
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

test('gzip is sent to those who accept it, when switched on', async () => {
  const sandbox = await startSandbox({ gzip: true })
  const response = await post(sandbox, body)
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(((await response.json()) as { items: unknown[] }).items).toHaveLength(100)
  const plain = await post(sandbox, body, SEARCH, { 'accept-encoding': 'identity' })
  expect(plain.headers.get('content-encoding')).toBeNull()
})

test('closing ends open requests at once', async () => {
  const sandbox = await startSandbox({ latencyMs: 60_000 })
  const pending = outcome(sandbox)
  await expect.poll(() => sandbox.requests.length).toBe(1)
  await sandbox.close()
  expect(await pending).toBe('no response')
  await sandbox.close()
})

test('latency can be drawn from a range', async () => {
  const sandbox = await startSandbox({ latencyMs: [20, 30] })
  const started = performance.now()
  await outcome(sandbox)
  expect(performance.now() - started).toBeGreaterThan(18)
})

test('many delayed responses cause no warning of Node.js', async () => {
  const warnings: string[] = []
  const warned = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const sandbox = await startSandbox({ latencyMs: 200 })
  await Promise.all(Array.from({ length: 20 }, () => outcome(sandbox)))
  expect(warnings).toEqual([])
})
