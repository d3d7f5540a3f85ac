import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { type Asked, startService } from '../fault/hostile-service.ts'

vi.setConfig({ testTimeout: 60_000 })

async function exported(answer: (asked: Asked) => void) {
  const service = await startService(answer)
  const folder = await mkdtemp(join(tmpdir(), 'spillway-address-'))
  try {
    const file = join(folder, 'pipeline.yaml')
    const domains = Array.from({ length: 10 }, (_, i) => `d${i}.example`).join(', ')
    await writeFile(
      file,
      `
name: address
service: { base_url: "${service.baseUrl}", requests_per_second: 1000 }
extract: { domains: [${domains}], concurrency: 1 }
load: { path: out }
`,
    )
    const env = { SPILLWAY_TOKEN: 'a-token' }
    const pipeline = await readPipeline(file, { env, cwd: folder })
    const said: string[] = []
    const observer = { log: (_level: string, message: string) => void said.push(message), progress: () => {} }
    const summary = await runPipeline(pipeline, { ...(await runOptions(pipeline, { env })), observer })
    return { summary, said, asked: service.asked.length }
  } finally {
    await rm(folder, { recursive: true, force: true })
    await service.close()
  }
}

const NOT_FOUND = { error: { code: 'NOT_FOUND', message: 'nothing here' } }

test('404 for every search stops the run at the second answer, and is said once', async () => {
  const { summary, said, asked } = await exported(({ json }) => json(NOT_FOUND, 404))
  expect(asked).toBe(2)
  expect(summary.error).toMatchObject({ kind: 'config' })
  expect(summary.error?.what).toContain('404')
  expect(summary.partitions).toEqual({ total: 10, done: 0, failed: 0, pending: 10 })
  expect(said.filter((message) => message.includes('404'))).toEqual([])
})

test('404 for one query is its own failure, wherever it comes', async () => {
  for (const sick of ['d0.example', 'd4.example', 'd9.example']) {
    const { summary, said } = await exported(({ body, json }) =>
      body.query.fqdn === sick ? json(NOT_FOUND, 404) : json({ items: [], next: null }),
    )
    expect(summary.partitions).toEqual({ total: 10, done: 9, failed: 1, pending: 0 })
    expect(said.filter((message) => message.includes('404'))).toHaveLength(1)
  }
})
