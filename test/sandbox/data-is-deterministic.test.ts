import { expect, test } from 'vitest'
import { type CredentialJson, DEMO_DOMAINS, type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import { micros, page, post, searchAll } from './client.ts'

const query = { type: 'domain', fqdn: 'scatterholt.com' } as const

async function everything(options: SandboxOptions): Promise<CredentialJson[]> {
  const sandbox = await startSandbox(options)
  return DEMO_DOMAINS.flatMap((fqdn) => [...sandbox.expected({ query: { type: 'domain', fqdn } })])
}

test('the same seed gives the same data, another seed other data', async () => {
  const one = await everything({ seed: 'a', records: 300 })
  expect(await everything({ seed: 'a', records: 300 })).toEqual(one)
  expect(await everything({ seed: 'b', records: 300 })).not.toEqual(one)
})

test('the data has the values that careless exporters break on', async () => {
  const all = await everything({ records: 6_000, nastyRate: 0.03 })
  const share = (test: (item: CredentialJson) => boolean) => all.filter(test).length / all.length
  expect(new Set(all.map((item) => item.id)).size).toBe(all.length)
  expect(all.every((item) => item.id > 2 ** 31 && Number.isSafeInteger(item.id))).toBe(true)
  expect(share((item) => item.hash === null)).toBeGreaterThan(0.01)
  expect(share((item) => item.domain === null)).toBeGreaterThan(0)
  expect(share((item) => item.source === null)).toBeGreaterThan(0)
  expect(share((item) => item.source?.description_fr === null)).toBeGreaterThan(0)
  expect(all.every((item) => item.source === null || item.source.id === item.source_id)).toBe(true)
  const types = new Set(all.map((item) => item.hash_type))
  expect(types).toEqual(new Set([null, 'unknown', 'md5', 'sha1', 'bcrypt']))
  const starts = ['=', '+', '-', '@', '\t', ' '].map((c) =>
    share((item) => item.hash?.startsWith(c) ?? false),
  )
  expect(Math.min(...starts)).toBeGreaterThan(0)
  for (const part of ['"', '\n', '\r', '\ud83d end', '\udc00', '\u202e', '\u0007', '🚀']) {
    expect(
      share((item) => item.hash?.includes(part) ?? false),
      JSON.stringify(part),
    ).toBeGreaterThan(0)
  }
  expect(all.some((item) => item.hash === '')).toBe(true)
  expect(all.some((item) => (item.hash?.length ?? 0) >= 20_000)).toBe(true)
  expect(all.some((item) => item.hash?.includes('\0') ?? false)).toBe(false)
  for (const spelling of [/\.\d{6}\+00:00$/, /:\d\d\+00:00$/, /\+02:00$/, /Z$/])
    expect(share((item) => spelling.test(item.imported_at))).toBeGreaterThan(0)
  const own = all.slice(0, 6_000).map((item) => micros(item.imported_at))
  expect(new Set(own).size).toBeLessThan(own.length)
  expect(own[0]! >= micros('2024-01-01T00:00:00Z') && own.at(-1)! < micros('2025-01-01T00:00:00Z')).toBe(true)
})

test('a lone surrogate travels as a JSON escape, other text as UTF-8', async () => {
  const sandbox = await startSandbox({ records: 200, nastyRate: 1 })
  const text = await (await post(sandbox, { query, size: 200 })).text()
  expect(text).toContain('\\ud83d end')
  expect(text).toContain('漢字かなカナ')
  expect(await searchAll(sandbox, { query, order: 'asc', size: 7 })).toEqual([...sandbox.expected({ query })])
})

test('two hundred million records take no memory and no time', async () => {
  const before = process.memoryUsage().rss
  const sandbox = await startSandbox({ records: 50_000_000 })
  const started = process.cpuUsage()
  for (const order of ['asc', 'desc'] as const) {
    const filters = { imported_at: { gte: '2024-06-01T00:00:00Z', lte: '2024-06-02T00:00:00Z' } }
    const first = await page(sandbox, { query, filters, order, size: 10_000 })
    const second = await page(sandbox, { query, filters, order, size: 10_000, from: first.next })
    const ids = new Set([...first.items, ...second.items].map((item) => item.id))
    expect(ids.size).toBe(20_000)
    const at = micros(second.items.at(-1)!.imported_at)
    expect(at >= micros('2024-06-01T00:00:00Z') && at <= micros('2024-06-02T00:00:00Z')).toBe(true)
  }
  // Processor time does not grow when the machine is busy.
  const { user, system } = process.cpuUsage(started)
  expect((user + system) / 1000).toBeLessThan(5000)
  expect(process.memoryUsage().rss - before).toBeLessThan(500e6)
})

test('options out of range are refused by name', async () => {
  await expect(startSandbox({ records: -1 })).rejects.toThrow(/records/)
  await expect(startSandbox({ emptyPageRate: 1 })).rejects.toThrow(/emptyPageRate/)
  await expect(startSandbox({ from: '2024-02-01', until: '2024-01-01' })).rejects.toThrow(/from/)
})
