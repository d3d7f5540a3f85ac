import { describe, expect, it, onTestFinished } from 'vitest'
import { BUCKET, mirror, namesIn, startBucket } from '../support/bucket.ts'
import { type PipelineParts, type Place, place, temporaryFolder } from './support/place.ts'
import { readParquet } from './support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from './support/rows.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const PREFIX = 'team/acme'

type World = { readonly here: Place; readonly double: Awaited<ReturnType<typeof startBucket>>['double'] }

async function world(parts: PipelineParts & { state?: object } = {}): Promise<World> {
  const { double, env } = await startBucket()
  onTestFinished(() => double.close())
  const here = await place(
    {
      ...parts,
      extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 20, ...parts.extract },
      load: { path: `s3://${BUCKET}/${PREFIX}`, ...parts.load },
    },
    {},
    env,
  )
  return { here, double }
}

/** The data set as a folder. */
async function copied({ double }: World): Promise<string> {
  const folder = temporaryFolder()
  await mirror(double, PREFIX, folder)
  return folder
}

async function expectEveryRowOnce(at: World): Promise<void> {
  const rows = await readParquet(await copied(at))
  expect(difference(rows, expectedOfDomains(at.here.sandbox, DOMAINS, RANGE))).toEqual(SAME)
}

describe.each([
  { kept: 'in the bucket', state: undefined },
  { kept: 'on a local disk', state: { path: 'kept' } },
])('with its state $kept', ({ state }) => {
  it('is exported, resumed, verified and exported anew', async () => {
    const at = await world({
      ...(state === undefined ? {} : { state }),
      extract: { max_requests: 3, concurrency: 2 },
    })
    const { here, double } = at
    let sent = 0
    for (;;) {
      const { code, stderr, summary } = await here.run()
      console.log(code, stderr, summary, double.log.length)
      expect([0, 4], stderr).toContain(code)
      sent += summary.requests
      expect(namesIn(double, `${PREFIX}/_SUCCESS`)).toHaveLength(code === 0 ? 1 : 0)
      if (code === 0) break
    }
    expect(here.searches()).toHaveLength(sent)
    await expectEveryRowOnce(at)
    console.log(namesIn(double))
    expect(double.uploads(BUCKET)).toEqual([])
    console.log(await here.cli('verify', 'pipeline.yaml'))
    console.log(await here.cli('status', 'pipeline.yaml'))
    console.log(await here.run())
    console.log(await here.run('--redo', 'domain.quillmere.net/*', '--max-requests', '100'))
    await expectEveryRowOnce(at)
    console.log(await here.cli('load', 'pipeline.yaml', '--to', 'duckdb:a.db'))
    console.log(await here.cli('query', 'pipeline.yaml', 'SELECT count(*) FROM credentials', '--json'))
    console.log(await here.run('--fresh', '--yes', '--max-requests', '100'))
    await expectEveryRowOnce(at)
    console.log(namesIn(double))
  })
})
