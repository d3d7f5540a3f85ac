import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import type { Fault, FaultEffect, SandboxOptions } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { expectedRows, exportedRows, pipelineYaml, SMALL, summaryOf, world } from './network-world.ts'

type Trouble = {
  readonly name: string
  readonly fault: FaultEffect
  /** Requests that fail. Default: the first, one in the middle, and a retry. */
  readonly strikes?: readonly number[]
  readonly options?: SandboxOptions
  readonly service?: string
  /** The next request asks for fewer rows, instead of a retry. */
  readonly halves?: boolean
}

const ONCE = [3]
const GZIP = { gzip: true }
const SHORT = 'timeout: 2s'

const TROUBLES: readonly Trouble[] = [
  { name: 'resets before the headers', fault: { kind: 'reset' } },
  { name: 'resets in the middle of the body', fault: { kind: 'reset-mid-body' } },
  { name: 'resets in the middle of a gzip body', fault: { kind: 'reset-mid-body' }, options: GZIP },
  { name: 'bodies that end early', fault: { kind: 'truncate' } },
  {
    name: 'bodies that stop and stay open',
    fault: { kind: 'stall' },
    strikes: ONCE,
    service: SHORT,
    halves: true,
  },
  {
    name: 'responses that never begin',
    fault: { kind: 'hang' },
    strikes: ONCE,
    service: SHORT,
    halves: true,
  },
  {
    name: 'bodies that drip slower than the timeout',
    fault: { kind: 'drip' },
    strikes: ONCE,
    service: SHORT,
    halves: true,
  },
  { name: 'a content-length that is too small', fault: { kind: 'wrong-content-length', by: -1 } },
  { name: 'a content-length that is too large', fault: { kind: 'wrong-content-length', by: 100 } },
  { name: "a proxy's error pages", fault: { kind: 'html' } },
  { name: 'HTML under status 200', fault: { kind: 'html', status: 200 } },
  { name: 'half of the JSON', fault: { kind: 'invalid-json' } },
  { name: 'half of the JSON in gzip', fault: { kind: 'invalid-json' }, options: GZIP },
  {
    name: 'bytes that are no UTF-8',
    fault: { kind: 'rewrite', rewrite: (body) => Buffer.from(body.replace('@', '\u00e9'), 'latin1') },
  },
  { name: 'an empty body', fault: { kind: 'rewrite', rewrite: () => '' } },
  ...[408, 500, 503].map((status) => ({
    name: `status ${status}`,
    fault: { kind: 'status' as const, status },
    ...(status === 408 ? { strikes: ONCE, halves: true } : {}),
  })),
  { name: 'a 503 that says when', fault: { kind: 'status', status: 503, retryAfter: '1' }, strikes: ONCE },
]

describe.concurrent('an export of several pages gives the same rows, each once, in spite of', () => {
  test.each(some(TROUBLES, 6))(
    '$name',
    async ({ fault, strikes = [1, 4, 5], options = {}, service = '', halves }) => {
      const faults: Fault[] = [{ ...fault, requests: strikes }]
      const { sandbox, workspace, run } = await world(
        { ...SMALL, ...options, faults },
        pipelineYaml({ service, pageSize: halves ? 100 : 40, concurrency: halves ? 1 : 2 }),
      )
      const ended = await exits(0, run())
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
      const { requests, retries } = summaryOf(ended)
      expect(requests).toBe(sandbox.requests.length)
      expect(retries).toBe(halves ? 0 : strikes.length)
      const sizes = sandbox.requests.map(({ body }) => (body as { size?: number }).size ?? 0)
      expect(Math.min(...sizes) < Math.max(...sizes)).toBe(halves ?? false)
    },
  )

  test('responses of every wrong shape', async () => {
    const shapes = [{ results: [] }, null, [], { items: {}, next: null }, { items: [], next: 5 }, 'items']
    const faults = shapes.map((body, i): Fault => ({ kind: 'wrong-shape', body, requests: [2 * i + 1] }))
    const { sandbox, workspace, run } = await world({ ...SMALL, faults }, pipelineYaml())
    const ended = await exits(0, run())
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    expect(summaryOf(ended).retries).toBe(shapes.length)
  })

  test.runIf(THOROUGH)('latency and a body that arrives slowly but steadily', async () => {
    const { sandbox, workspace, run } = await world(
      { ...SMALL, latencyMs: [0, 80], gzip: true, faults: [{ kind: 'drip', bytes: 4000, everyMs: 5 }] },
      pipelineYaml(),
    )
    const ended = await exits(0, run())
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    expect(summaryOf(ended).retries).toBe(0)
  })
})
