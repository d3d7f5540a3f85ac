import { join } from 'node:path'
import { expect, it } from 'vitest'
import { planShape, statusShape } from '../support/json-shapes.ts'
import { readParquet } from '../support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../support/rows.ts'
import { exits, runCli } from '../support/run-cli.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const PARTS = {
  service: { requests_per_second: 40 },
  extract: {
    domains: ['scatterholt.com'],
    windows: { ...RANGE, every: 'month' },
    page_size: 5,
    concurrency: 1,
  },
}

/** The output of status and plan, after checking what must hold at any moment. */
async function watch(here: Workspace) {
  const status = statusShape.parse((await here.json('status')).value)
  const plan = planShape.parse((await here.json('plan')).value)
  const count = (state: string) => status.partitions.filter((partition) => partition.state === state).length
  const sum = (of: 'rows' | 'requests') => status.partitions.reduce((total, each) => total + each[of], 0)
  expect(status.totals).toMatchObject({
    partitions: status.partitions.length,
    done: count('done'),
    partial: count('partial'),
    failed: count('failed'),
    pending: count('pending'),
    rows: sum('rows'),
    requests: sum('requests'),
  })
  const { total, done, partial, pending } = plan.partitions
  expect([total, done, done + partial + pending]).toEqual([status.partitions.length, count('done'), total])
  // One chain for each sequence of adjacent windows that are not done.
  const chains = status.partitions.filter(
    ({ state }, i) => state !== 'done' && (i === 0 || status.partitions[i - 1]!.state === 'done'),
  )
  expect(plan.min_requests).toBe(chains.length)
  expect(plan.min_seconds).toBeCloseTo(chains.length / 40)
  return { status, plan }
}

/** Rows of some of the partitions, by their indexes. */
function rowsOf({ status }: Awaited<ReturnType<typeof watch>>, ...indexes: number[]): number {
  return indexes.reduce((sum, index) => sum + status.partitions[index]!.rows, 0)
}

it('status and plan describe a pipeline before, during and after a run', async () => {
  const here = await newWorkspace(PARTS, { faults: [{ kind: 'hang', requests: [7] }] })
  const before = await watch(here)
  expect(before.plan.partitions).toEqual({ total: 3, done: 0, partial: 0, pending: 3 })
  expect(here.sandbox.requests).toHaveLength(0)

  let stop: (signal: NodeJS.Signals) => void = () => {}
  const run = runCli({
    args: ['run', 'pipeline.yaml', '--json'],
    cwd: here.folder,
    env: here.env,
    onStart: (kill) => {
      stop = kill
    },
  })
  // Three pages go beyond January, six beyond February. The seventh request gets no response.
  await expect.poll(() => here.searches().length).toBe(7)
  const during = await watch(here)
  const [january, february, march] = during.status.partitions
  expect(january).toMatchObject({
    key: 'domain.scatterholt.com/2024-01-01..2024-02-01',
    query: 'domain.scatterholt.com',
    window: { from: '2024-01-01T00:00:00Z', until: '2024-02-01T00:00:00Z' },
    state: 'done',
    requests: 3,
    next: null,
    error: null,
  })
  expect([february!.state, march!.state]).toEqual(['done', 'partial'])
  expect([february!.next, march!.next]).toEqual([null, expect.any(String)])
  expect(during.status.totals.rows).toBe(
    here
      .searches()
      .slice(0, 6)
      .reduce((sum, { items }) => sum + items, 0),
  )

  stop('SIGINT')
  const ended = await exits(130, run)
  expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'interrupted', partitions: { total: 3, done: 2 } })
  expect((await here.manifest()).runs).toMatchObject([{ status: 'interrupted' }])

  const stopped = await here.run('--max-requests', '1')
  expect(stopped.code).toBe(4)
  const half = await watch(here)
  const last = half.status.partitions[2]!
  expect(last).toMatchObject({ state: 'partial', rows: 35 - rowsOf(half, 0, 1), next: expect.any(String) })
  expect(half.plan.partitions).toEqual({ total: 3, done: 2, partial: 1, pending: 0 })

  expect((await here.run()).code).toBe(0)
  const after = await watch(here)
  expect(after.plan).toEqual({
    partitions: { total: 3, done: 3, partial: 0, pending: 0 },
    min_requests: 0,
    min_seconds: 0,
    expected_requests: 0,
    expected_seconds: 0,
    expected_searches: 0,
    searches: { low: 0, high: 0 },
  })
  // The export resumed with the saved cursor.
  expect(here.searches().map(({ body }) => (body as { from?: string }).from)).toContain(last.next)
  const wanted = expectedOfDomains(here.sandbox, ['scatterholt.com'], RANGE)
  expect(difference(await readParquet(here.output), wanted)).toEqual(SAME)
  expect(after.status.totals).toMatchObject({ rows: wanted.length, shards: 3 })
  expect(join(here.output, '_manifest.json')).toBe((await here.run()).summary.manifest)
})
