import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import type { Workspace } from '../support/workspace.ts'
import { trial } from './trial.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net', 'd.example']
const TWO_MONTHS = { from: '2024-01-01', until: '2024-03-01', every: 'month', per_chain: 1 }

/** Three queries over two months each: the first is done, one month of the second failed, the third is pending. */
async function halfDone() {
  const here = await trial(
    { extract: { domains: DOMAINS, windows: TWO_MONTHS, concurrency: 1 } },
    { domains: DOMAINS, faults: [{ kind: 'status', status: 400, code: 'NO_WAY', requests: [4] }] },
  )
  const call = async (...given: Parameters<Workspace['call']>) => {
    const ended = await here.call(...given)
    expect(ended.stderr).not.toContain('Unknown')
    return { ...ended, lines: ended.stdout.trimEnd().split('\n') }
  }
  const run = await exits(4, call('run', '--max-requests', '4'))
  return { ...here, call, ran: run }
}

it('status and plan show a line for each query, and on request for each partition', async () => {
  const { call, json, ran } = await halfDone()
  const status = await call('status')
  expect(status.lines[0]).toBe('trial: STOPPED: 1 of 6 partitions failed, 2 not done')
  expect(status.lines).toContain('3 of 6 partitions done, 1 failed, 2 pending')
  const table = status.lines.slice(status.lines.indexOf('') + 1)
  expect(table).toEqual([
    'query                   partitions  done  failed  pending  rows  requests',
    expect.stringMatching(/^domain\.scatterholt\.com {11}2 {5}2 {22}\d {9}2$/),
    expect.stringMatching(/^domain\.quillmere\.net {13}2 {5}1 {7}1 {14}\d {9}2$/),
    expect.stringMatching(/^ {2}2024-02-01\.\.2024-03-01: The service responded with 400: NO_WAY/),
    'domain.d.example                 2                      2',
  ])

  const all = await call('status', '--all', '--state', 'failed', '--state', 'pending')
  expect(all.lines.slice(all.lines.indexOf('') + 1)).toEqual([
    'query                 window                  state    requests',
    'domain.quillmere.net  2024-02-01..2024-03-01  failed          1',
    expect.stringMatching(/^ {2}The service responded with 400: NO_WAY/),
    'domain.d.example      2024-01-01..2024-02-01  pending',
    'domain.d.example      2024-02-01..2024-03-01  pending',
  ])
  for (const glob of ['d.*', 'domain.d.example', '*.d.*']) {
    const { lines } = await call('status', '--query', glob)
    expect(lines.slice(lines.indexOf('') + 2)).toEqual([expect.stringMatching(/^domain\.d\.example /)])
  }
  expect((await call('status', '--query', 'nobody')).lines.at(-1)).toBe('no partition is like that')

  const { partitions, totals } = (await json('status', '--state', 'failed')).value
  expect(partitions).toMatchObject([{ query: 'domain.quillmere.net', state: 'failed' }])
  expect(totals.partitions).toBe(6)

  const plan = await call('plan')
  expect(plan.lines.slice(plan.lines.indexOf('') + 1)).toEqual([
    'query                   partitions  done  failed  pending',
    'domain.scatterholt.com           2     2',
    'domain.quillmere.net             2     1       1',
    expect.stringMatching(/NO_WAY/),
    'domain.d.example                 2                      2',
  ])
  expect(ran.stdout).toContain('spillway run pipeline.yaml\n')
  expect(ran.stdout).toContain('spillway status pipeline.yaml\n')
  expect((await call('run')).code).toBe(0)
  expect((await call('status')).stdout).toMatch(/^domain\.d\.example {17}2 {5}2 +\d {9}2$/m)
})

it('of five hundred queries the first are shown, and the rest in one line', async () => {
  const domains = Array.from({ length: 501 }, (_, i) => `d${i}.example`)
  const { call } = await trial({ extract: { domains } })
  for (const command of ['status', 'plan']) {
    const { stdout } = await call(command)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => line.startsWith('domain.'))).toHaveLength(20)
    expect(lines.at(-1)).toBe(
      '… and 481 more queries with 1,443 partitions (1,443 pending); --query shows some of them, --all every partition',
    )
  }
})

const DAMAGED =
  'The export is DAMAGED, see above. The export is STOPPED: 1 of 6 partitions failed, 2 not done.'
const REPAIR = [
  expect.stringMatching(/^This exports \d partitions again, and what shares a shard with them:$/),
  expect.stringMatching(/^ {2}spillway run pipeline\.yaml( --redo '\S+')+$/),
]

it('verify shows each cause in one line, and on request each problem', async () => {
  const { call, json, output, manifest } = await halfDone()
  const before = await call('verify')
  expect(before).toMatchObject({ code: 0, stdout: expect.stringMatching(/the files are intact: 3 shards/) })
  const paths = (await manifest()).shards.map((shard) => shard.path)
  const [path, second, third] = paths
  for (const each of [second!, third!]) appendFileSync(join(output, each), each)
  const strays = [1, 2, 3, 4].map((n) => `credentials/stray-${n}.parquet`)
  for (const stray of strays) writeFileSync(join(output, stray), '')
  const differing = await call('verify')
  expect(differing.lines.at(-3)).toMatch(/^Move what the manifest does not name/)
  expect(differing.lines.slice(1, -4)).toEqual([
    expect.stringMatching(`^  ${second}, ${third}  holds [0-9,]+ bytes instead of [0-9]+ \\(the first\\)$`),
    expect.stringMatching(`^  ${strays.slice(0, 3).join(', ')} and 1 more  `),
    '  --all shows each',
  ])
  rmSync(join(output, 'credentials'), { recursive: true })
  const grouped = await exits(1, call('verify'))
  expect(grouped.lines).toEqual([
    'trial: 3 problems in 3 shards, 0 rows',
    `  ${paths.join(', ')}  is missing`,
    '  --all shows each',
    DAMAGED,
    ...REPAIR,
  ])
  const each = await call('verify', '--all')
  expect(each.lines.slice(1, -3)).toHaveLength(3)
  expect(each.lines.at(-3)).toBe(DAMAGED)
  expect(each.lines[1]).toBe(`  ${path}  is missing`)
  const { problems } = (await json('verify')).value
  expect(problems).toHaveLength(3)
  expect(problems[0]).toEqual({ path, problem: 'is missing', cause: 'missing' })
})
