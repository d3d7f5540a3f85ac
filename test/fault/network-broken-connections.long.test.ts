import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { type Strike, startProxy } from './network-proxy.ts'
import {
  DOMAINS,
  expectedRows,
  exportedRows,
  pipelineYaml,
  SMALL,
  summaryOf,
  world,
} from './network-world.ts'

const TROUBLES: readonly (readonly [string, Strike])[] = [
  ['connections that are refused', { kind: 'refuse' }],
  ['resets in the middle of the headers', { kind: 'reset-after', bytes: 60 }],
  ['resets after the headers', { kind: 'reset-after-headers' }],
  ['compressed responses that break off', { kind: 'reset-after', bytes: 1500 }],
  ['compressed responses with a wrong byte', { kind: 'flip-body' }],
  ['responses in single bytes', { kind: 'chunks', bytes: 1 }],
]

describe.concurrent('an export through a bad connection gives the same rows, each once, in spite of', () => {
  test.each(some(TROUBLES, 2))('%s', async (_name, strike) => {
    const { sandbox, workspace, run } = await world({ ...SMALL, gzip: true }, pipelineYaml())
    const proxy = await startProxy(Number(new URL(sandbox.origin).port), (number) =>
      number <= 3 ? strike : null,
    )
    const baseUrl = sandbox.baseUrl.replace(/:\d+/, `:${proxy.port}`)
    const ended = await exits(0, run({ SPILLWAY_BASE_URL: baseUrl }))
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    if (strike.kind !== 'chunks') expect(summaryOf(ended).retries).toBeGreaterThan(0)
  })
})

describe.concurrent('a service that cannot be reached', () => {
  const places = [
    [
      'an unknown host',
      async () => 'http://no-such-host.invalid/firework',
      /The name no-such-host\.invalid is unknown/,
    ],
    ['a closed port', async () => `http://127.0.0.1:${await closedPort()}/firework`, /Nothing accepts/],
  ] as const
  test.each(some(places, 1))(
    '%s stops the run, which says why, and a later run exports everything',
    async (_name, address, why) => {
      const { sandbox, workspace, run } = await world(
        SMALL,
        pipelineYaml({ service: 'allow_http: true, retries: 1' }),
      )
      const failed = await exits(1, run({ SPILLWAY_BASE_URL: await address() }))
      expect(failed.stderr).toMatch(why)
      expect(summaryOf(failed)).toMatchObject({
        status: 'failed',
        rows: 0,
        requests: 0,
        partitions: { done: 0 },
      })
      await exits(0, run())
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox, DOMAINS))
    },
  )
})

/** A port that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
