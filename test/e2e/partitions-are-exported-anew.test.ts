import { existsSync } from 'node:fs'
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { readParquet, shardPaths } from './support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from './support/rows.ts'
import type { PipelineParts, Workspace } from './support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const parts = (load = {}): PipelineParts => ({
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 10 },
  load,
})
const JANUARY = 'domain.quillmere.net/2024-01-01..2024-02-01'

async function holdsEverything(here: Workspace): Promise<void> {
  expect(difference(await readParquet(here.output), expectedOfDomains(here.sandbox, DOMAINS, RANGE))).toEqual(
    SAME,
  )
  const { code, value } = await here.json('verify')
  expect(value).toMatchObject({ ok: true, problems: [] })
  expect(code).toBe(0)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
}

/** Distinct queries and windows of the searches sent since. */
function queriesSince({ sandbox }: Workspace, sent: number): string[] {
  const queries = sandbox.requests.slice(sent).map(({ body }) => {
    const { query, filters } = body as {
      query: { fqdn: string }
      filters: { imported_at: { gte: string } }
    }
    return `${query.fqdn} ${filters.imported_at.gte.slice(0, 10)}`
  })
  return [...new Set(queries)].sort()
}

it('--redo of one partition requests only that one and gives the same bytes', async () => {
  const here = await exportedWorkspace(parts())
  const before = await here.manifest()
  const sent = here.sandbox.requests.length
  const { code, stderr } = await here.run('--redo', JANUARY)
  expect(code, stderr).toBe(0)
  expect(queriesSince(here, sent)).toEqual(['quillmere.net 2024-01-01'])
  expect((await here.manifest()).shards).toEqual(before.shards)
  await holdsEverything(here)
})

it.each([
  { redo: 'domain.quillmere.net', months: ['01', '02', '03'] },
  { redo: 'domain.quillmere.net/2024-0[23]*', months: ['02', '03'] },
])('--redo $redo exports the matching partitions again', async ({ redo, months }) => {
  const here = await exportedWorkspace(parts())
  const sent = here.sandbox.requests.length
  expect((await here.run('--redo', redo)).code).toBe(0)
  expect(queriesSince(here, sent)).toEqual(months.map((month) => `quillmere.net 2024-${month}-01`))
  await holdsEverything(here)
})

it.each([
  { partitionBy: 'none', besides: ['quillmere.net', 'scatterholt.com'] },
  { partitionBy: 'query', besides: ['quillmere.net'] },
])(
  'in shared folders --redo covers every partition of the shard: partition_by $partitionBy',
  async ({ partitionBy, besides }) => {
    const here = await exportedWorkspace(parts({ partition_by: partitionBy }))
    const sent = here.sandbox.requests.length
    expect((await here.run('--redo', JANUARY)).code).toBe(0)
    const domains = queriesSince(here, sent).map((query) => query.split(' ')[0])
    expect([...new Set(domains)]).toEqual(besides)
    await holdsEverything(here)
  },
)

it('the message about a missing shard names a --redo that repairs it', async () => {
  const here = await exportedWorkspace(parts())
  const [path] = (await shardPaths(here.output)) as [string]
  await rm(join(here.output, path))
  const stopped = await here.run()
  expect(stopped.code).toBe(1)
  const named = /--redo (\S+?)`/.exec(stopped.stderr)?.[1] ?? ''
  expect(named).toMatch(/^domain\.quillmere\.net\//)
  expect((await here.run('--redo', named)).code).toBe(0)
  await holdsEverything(here)
})

it('verify --fix says what it costs, does nothing without --yes, and repairs all damage', async () => {
  const here = await exportedWorkspace(parts())
  const [first, second, third] = (await shardPaths(here.output)) as [string, string, string]
  await rm(join(here.output, first))
  const bytes = await readFile(join(here.output, second))
  bytes[bytes.length >> 1]! ^= 1
  await writeFile(join(here.output, second), bytes)
  await copyFile(join(here.output, third), join(here.output, third.replace('part-00000', 'part-00009')))

  const sent = here.sandbox.requests.length
  const refused = await here.cli('verify', 'pipeline.yaml', '--fix')
  expect(refused.code).toBe(2)
  expect(refused.stderr).toMatch(/removes 2 shards with \d+ rows .* took \d+ page/)
  expect(refused.stderr).toContain('--yes')
  expect(here.sandbox.requests).toHaveLength(sent)
  expect((await here.json('verify')).code).toBe(1)

  const { code, stdout, stderr } = await here.cli('verify', 'pipeline.yaml', '--fix', '--yes', '--json')
  expect(code, stderr).toBe(0)
  const printed = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(printed).toMatchObject([{ ok: false }, { status: 'complete', partitions: { failed: 0 } }])
  expect(queriesSince(here, sent)).toHaveLength(2)
  await holdsEverything(here)
})

it('an impossible --redo is refused with exit 2, and nothing changes', async () => {
  const here = await exportedWorkspace(parts({ partition_by: 'none' }))
  const checkpoint = await readFile(join(here.output, '_state/checkpoint.jsonl'))
  const sent = here.sandbox.requests.length

  const unknown = await here.run('--redo', 'domain.nobody.example')
  expect(unknown.code).toBe(2)
  expect(unknown.stderr).toContain('domain.nobody.example')
  expect((await here.run('--redo', JANUARY, '--fresh', '--yes')).code).toBe(2)

  await here.write({
    ...parts({ partition_by: 'none' }),
    extract: { ...parts().extract, domains: [DOMAINS[1]] },
  })
  const lost = await here.run('--redo', JANUARY)
  expect(lost.code).toBe(2)
  expect(lost.stderr).toContain('domain.scatterholt.com/')

  expect(await readFile(join(here.output, '_state/checkpoint.jsonl'))).toEqual(checkpoint)
  expect(here.sandbox.requests).toHaveLength(sent)
})

it('a shard that is invalidated and not yet exported again leaves no file that a reader would take for data', async () => {
  const here = await exportedWorkspace(parts())
  expect((await here.run('--redo', 'domain.quillmere.net', '--max-requests', '1')).code).toBe(4)
  const paths = await shardPaths(here.output)
  expect(paths.filter((path) => path.includes('quillmere'))).toHaveLength(0)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(false)
  expect((await here.run()).code).toBe(0)
  await holdsEverything(here)
})
