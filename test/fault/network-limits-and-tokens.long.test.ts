import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { atTheEnd } from '../support/at-the-end.ts'
import { exits } from '../support/run-cli.ts'
import type { Fault, LoggedRequest, Sandbox } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { expectedRows, exportedRows, pipelineYaml, SMALL, summaryOf, world } from './network-world.ts'

describe.concurrent('when the service responds with 429', () => {
  const storms: readonly { name: string; leastMs: number; retryAfter?: string | (() => string) }[] = [
    { name: 'with Retry-After in seconds', leastMs: 2000, retryAfter: '2' },
    // A date has a resolution of one second, so up to one of the two may have passed already.
    {
      name: 'with Retry-After as a date',
      leastMs: 1000,
      retryAfter: () => new Date(Date.now() + 2000).toUTCString(),
    },
    { name: 'without Retry-After', leastMs: 10_000 },
    { name: 'with an invalid Retry-After', leastMs: 10_000, retryAfter: 'soon' },
  ]
  test.each(THOROUGH ? storms : storms.slice(0, 1))(
    '$name, no request is sent before the wait is over',
    async ({ leastMs, retryAfter }) => {
      const fault: Fault = {
        kind: 'status',
        status: 429,
        requests: [3],
        ...(retryAfter === undefined ? {} : { retryAfter }),
      }
      const { sandbox, workspace, run } = await world({ ...SMALL, faults: [fault] }, pipelineYaml())
      await exits(0, run())
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
      expect(sentWithin(sandbox.requests, leastMs - 20)).toEqual([])
    },
  )

  test.runIf(THOROUGH)('again and again, the export still ends with every row', async () => {
    const storm: Fault = { kind: 'status', status: 429, rate: 0.4, times: 6, retryAfter: '1' }
    const { sandbox, workspace, run } = await world({ ...SMALL, faults: [storm] }, pipelineYaml())
    await exits(0, run())
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    expect(sandbox.requests.filter(({ status }) => status === 429).length).toBeGreaterThan(1)
  })

  test('with a wait of an hour, the run stops with exit 4 and resumes later', async () => {
    const fault: Fault = { kind: 'status', status: 429, requests: [4], retryAfter: '3600' }
    const { sandbox, workspace, run } = await world({ ...SMALL, faults: [fault] }, pipelineYaml())
    const stopped = await exits(4, run())
    expect(summaryOf(stopped).status).toBe('budget')
    expect((await run()).code).toBe(0)
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
  })
})

/** Requests that arrived less than `leastMs` after a response 429. */
function sentWithin(requests: readonly LoggedRequest[], leastMs: number): readonly number[] {
  return requests
    .filter(({ status }) => status === 429)
    .flatMap(({ at, number }) =>
      // The request that was already in flight when the response came is allowed.
      requests.filter((other) => other.number > number + 1 && other.at < at + leastMs).map((o) => o.at - at),
    )
}

const BY_API_KEY = 'api_key_env: SPILLWAY_API_KEY, token_url: /tokens/generate'

describe.concurrent('tokens that expire', () => {
  const deaths: readonly (readonly [string, readonly Fault[]])[] = [
    ['with the very first request', [{ kind: 'revoke-tokens', requests: [1] }]],
    ['in the middle of a chain', [{ kind: 'revoke-tokens', requests: [4] }]],
    [
      'between a failure and its retry',
      [
        { kind: 'status', status: 503, requests: [3] },
        { kind: 'revoke-tokens', requests: [4] },
        { kind: 'status', status: 503, requests: [5] },
      ],
    ],
  ]
  test.each(some(deaths, 1))('%s are renewed with the API key', async (_name, faults) => {
    const { sandbox, workspace, run } = await world(
      { ...SMALL, basicRequestsPerSecond: 0, faults },
      pipelineYaml({ service: BY_API_KEY }),
    )
    await exits(0, run({ SPILLWAY_TOKEN: '' }))
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    expect(sandbox.requests.filter(({ kind }) => kind === 'tokens')).toHaveLength(2)
  })

  test('are read again from their file', async () => {
    const { sandbox, workspace, run } = await world(SMALL, pipelineYaml({ concurrency: 1 }))
    const file = join(workspace.folder, 'token')
    await writeFile(file, 'first-token\n', { mode: 0o600 })
    const gate = await startGate(sandbox, ['first-token', 'second-token'], async (next) =>
      writeFile(file, `${next}\n`),
    )
    await exits(
      0,
      run({
        SPILLWAY_BASE_URL: gate.baseUrl,
        SPILLWAY_TOKEN: '',
        SPILLWAY_TOKEN_FILE: file,
      }),
    )
    expect(gate.refused).toBe(1)
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
  })

  test('without a new one end the run with exit 3, and a later run resumes', async () => {
    const { sandbox, workspace, run } = await world(
      { ...SMALL, faults: [{ kind: 'revoke-tokens', requests: [4] }] },
      pipelineYaml(),
    )
    const refused = await exits(3, run())
    expect(refused.stderr).toContain('SPILLWAY_TOKEN')
    const fresh = await fetch(`${sandbox.origin}/tokens/generate`, {
      method: 'POST',
      headers: { authorization: sandbox.apiKey },
    })
    const { token } = (await fresh.json()) as { token: string }
    const ended = await exits(0, run({ SPILLWAY_TOKEN: token }))
    expect(summaryOf(ended).rows).toBeLessThan(expectedRows(sandbox).length)
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
  })
})

type Gate = { readonly baseUrl: string; readonly refused: number }

/**
 * A proxy of a sandbox that accepts one token for three requests, then only the next one.
 * @param onExpiry called with the next token before the old one is refused
 */
async function startGate(
  sandbox: Sandbox,
  [first, second]: readonly [string, string],
  onExpiry: (next: string) => Promise<void>,
): Promise<Gate> {
  let requests = 0
  let refused = 0
  const pass = async (request: IncomingMessage): Promise<[number, string]> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const valid = ++requests <= 3 ? first : second
    if (request.headers.authorization !== `Bearer ${valid}`) {
      if (refused++ === 0) await onExpiry(second)
      return [401, '{"error":{"code":"UNAUTHORIZED","message":"the access token is expired"}}']
    }
    const forwarded = await fetch(`${sandbox.origin}${request.url}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.token}`, 'content-type': 'application/json' },
      body: Buffer.concat(chunks),
    })
    return [forwarded.status, await forwarded.text()]
  }
  const server = createServer((request, response) => {
    void pass(request).then(([status, text]) => response.writeHead(status).end(text))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atTheEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    baseUrl: sandbox.baseUrl.replace(/:\d+/, `:${(server.address() as AddressInfo).port}`),
    get refused() {
      return refused
    },
  }
}
