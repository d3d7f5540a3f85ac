import { expect, it } from 'vitest'
import { probeService } from '../../src/run/index.ts'
import type { Sandbox, SandboxOptions } from '../support/sandbox.ts'
import { exportsTo, IMPATIENT, sandboxOf } from './world.ts'

async function probed(options: SandboxOptions, extract?: string, service?: string) {
  const sandbox = await sandboxOf({ domains: ['a.example'], ...options })
  return probeOf(sandbox, extract, service)
}

async function probeOf(sandbox: Sandbox, extract = 'domains: [a.example]', service = '') {
  const here = exportsTo()
  const before = sandbox.requests.length
  const url = service === '' ? sandbox.baseUrl : sandbox.origin
  const probe = await probeService(await here.read(url, extract, service), {
    clock: IMPATIENT,
    readSecret: async () => sandbox.token,
    stop: new AbortController().signal,
    log: () => {},
    hidesTexts: false,
  })
  expect(before + probe.requests).toBe(sandbox.requests.length)
  return probe
}

it('requests two pages, if there are rows enough', async () => {
  const many = { records: 2000, quota: 500 }
  await expect(probed({ ...many, rowsPerSearch: 100 })).resolves.toMatchObject({
    reading: '100 rows',
    page: { rows: 200, searches: 2 },
    requests: 2,
    searchesRemaining: 496,
  })
  await expect(probed({ ...many, rowsPerSearch: 0 })).resolves.toMatchObject({
    reading: 'request',
    page: { rows: 200, searches: 1 },
    requests: 2,
    searchesRemaining: 498,
  })
})

it.each([0, 100])(
  'names no reading for pages that are free, because it ran a moment ago (%s)',
  async (rowsPerSearch) => {
    const sandbox = await sandboxOf({ domains: ['a.example'], records: 2000, quota: 500, rowsPerSearch })
    await probeOf(sandbox)
    await expect(probeOf(sandbox)).resolves.toMatchObject({
      reading: 'free',
      page: { searches: 0 },
      requests: 2,
    })
  },
)

it('sends no request that would measure nothing', async () => {
  await expect(probed({ records: 60, quota: 500 })).resolves.toMatchObject({
    reading: 'unknown',
    requests: 1,
  })
  await expect(probed({ records: 2000 }, 'domains: [a.example], page_size: 50')).resolves.toMatchObject({
    reading: 'unknown',
    requests: 1,
  })
  const second = "search_path: '/astp/v2/credentials/_search'"
  await expect(probed({ records: 2000 }, 'domains: [a.example]', second)).resolves.toMatchObject({
    reading: 'nothing',
    requests: 1,
  })
})

it('leaves min_searches_remaining', async () => {
  const extract = 'domains: [a.example], min_searches_remaining: 497'
  await expect(probed({ records: 2000, quota: 500 }, extract)).rejects.toMatchObject({ kind: 'quota' })
})
