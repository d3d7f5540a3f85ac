import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type LoggedRequest, startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { expectedRows, exportedRows, pipelineYaml, SMALL, summaryOf, world } from './network-world.ts'
import { runCli } from './support.ts'

const SICK = 'scatterholt.com'
const isSick = ({ body }: LoggedRequest): boolean => JSON.stringify(body ?? '').includes(SICK)

describe.concurrent('a partition for which every response is', () => {
  const failures = [
    { status: 500, code: 'INTERNAL', sent: 2 },
    { status: 404, code: 'NO_SUCH_THING', sent: 1 },
    { status: 422, code: 'UNPROCESSABLE', sent: 1 },
  ]
  test.each(some(failures, 1))(
    '$status fails, the others are exported, and a later run makes it whole',
    async ({ status, code, sent }) => {
      const { sandbox, workspace, run } = await world(
        { ...SMALL, faults: [{ kind: 'status', status, code, when: isSick }] },
        pipelineYaml({ service: 'retries: 1' }),
      )
      const healed = await startSandbox({ ...SMALL, token: sandbox.token })
      const failed = await exits(1, run())
      expect(summaryOf(failed)).toMatchObject({
        status: 'failed',
        partitions: { total: 2, done: 1, failed: 1, pending: 0 },
      })
      expect(sandbox.requests.filter(isSick)).toHaveLength(sent)
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox, ['quillmere.net']))
      await expectStatusSays(workspace, new RegExp(`${status}.*${code}`))
      await expectSummaryNames(workspace, `domain.${SICK}/all`)

      await exits(0, run({ SPILLWAY_BASE_URL: healed.baseUrl }))
      expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
      expect(healed.requests.every(isSick)).toBe(true)
    },
  )

  test('invalid UTF-8 fails, and no row of it is exported with replacement characters', async () => {
    const rewrite = (body: string): Uint8Array => Buffer.from(body.replace('@', '\u00e9'), 'latin1')
    const { sandbox, workspace, run } = await world(
      { ...SMALL, faults: [{ kind: 'rewrite', rewrite, when: isSick }] },
      // One slot, so that no page is prefetched.
      pipelineYaml({ service: 'retries: 1', concurrency: 1 }),
    )
    const failed = await exits(1, run())
    expect(failed.stderr).toContain('The response is no UTF-8')
    expect(sandbox.requests.filter(isSick)).toHaveLength(2)
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox, ['quillmere.net']))
  })

  test('a failure after some pages keeps those pages', async () => {
    const sick = (request: LoggedRequest): boolean => isSick(request) && request.ordinal > 3
    const { sandbox, workspace, run } = await world(
      { ...SMALL, faults: [{ kind: 'reset', when: sick }] },
      pipelineYaml({ service: 'retries: 0', concurrency: 1 }),
    )
    const healed = await startSandbox({ ...SMALL, token: sandbox.token })
    const failed = await exits(1, run())
    expect(summaryOf(failed).rows).toBeGreaterThan(expectedRows(sandbox, ['quillmere.net']).length)
    await exits(0, run({ SPILLWAY_BASE_URL: healed.baseUrl }))
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    // 150 rows are four pages of 40, of which three are committed.
    expect(healed.requests).toHaveLength(1)
  })
})

type Workspace = {
  readonly pipeline: string
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

async function expectStatusSays(workspace: Workspace, why: RegExp): Promise<void> {
  const { stdout } = await runCli({
    args: ['status', workspace.pipeline, '--json'],
    cwd: workspace.folder,
    env: workspace.env,
  })
  const { partitions } = JSON.parse(stdout) as {
    partitions: { query: string; state: string; error: string | null }[]
  }
  const states = Object.fromEntries(partitions.map(({ query, state }) => [query, state]))
  expect(states).toEqual({ [`domain.${SICK}`]: 'failed', 'domain.quillmere.net': 'done' })
  expect(partitions.find(({ state }) => state === 'failed')?.error).toMatch(why)
}

/** The printed summary names it as well. */
async function expectSummaryNames(workspace: Workspace, partition: string): Promise<void> {
  const { stdout, code } = await runCli({
    args: ['run', workspace.pipeline],
    cwd: workspace.folder,
    env: workspace.env,
  })
  expect(code).toBe(1)
  expect(stdout).toContain(partition)
}
