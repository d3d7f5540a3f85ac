import { expect, it } from 'vitest'
import { probeService } from '../../src/run/index.ts'
import type { SandboxOptions } from '../../src/sandbox/index.ts'
import { exportsTo, IMPATIENT, sandboxOf } from './quick-export.ts'

async function probed(options: SandboxOptions, extract = 'domains: [a.example]', service = '') {
  const sandbox = await sandboxOf({ domains: ['a.example'], ...options })
  const here = await exportsTo()
  const url = service === '' ? sandbox.baseUrl : sandbox.origin
  const probe = await probeService(await here.read(url, extract, service), {
    clock: IMPATIENT,
    readSecret: async () => sandbox.token,
    stop: new AbortController().signal,
    log: () => {},
  })
  expect(probe.requests).toBe(sandbox.requests.length)
  return probe
}

it('sends two requests of different size, if there are rows enough', async () => {
  const many = { records: 2000, quota: 500 }
  await expect(probed({ ...many, rowsPerSearch: 100 })).resolves.toMatchObject({
    reading: '100 rows',
    page: { rows: 1000, searches: 9 },
    requests: 2,
    searchesRemaining: 490,
  })
  await expect(probed({ ...many, rowsPerSearch: 0 })).resolves.toMatchObject({
    reading: 'request',
    page: { rows: 1000 },
    requests: 2,
  })
})

it('sends no request that would measure nothing', async () => {
  await expect(probed({ records: 60, quota: 500 })).resolves.toMatchObject({
    reading: 'unknown',
    requests: 1,
  })
  await expect(probed({ records: 2000 }, 'domains: [a.example], page_size: 50')).resolves.toMatchObject({
    reading: 'unknown',
    requests: 1,
  })
  const second = ", search_path: '/astp/v2/credentials/_search'"
  await expect(probed({ records: 2000 }, 'domains: [a.example]', second)).resolves.toMatchObject({
    reading: 'nothing',
    requests: 1,
  })
})

it('leaves min_searches_remaining', async () => {
  const extract = 'domains: [a.example], min_searches_remaining: 495'
  await expect(probed({ records: 2000, quota: 500 }, extract)).rejects.toMatchObject({ kind: 'quota' })
})
