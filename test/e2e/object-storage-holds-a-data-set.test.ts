import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { S3Double } from '../s3/double/server.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { BUCKET, type Bucket, bucketOf, editObjects, startBucket } from '../support/bucket.ts'
import { startContainer } from '../support/container.ts'
import { writeKeyPair } from '../support/key-pair.ts'
import { readParquet } from '../support/read-shards.ts'
import { expectedOfDomains, expectSame } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace, workspaceFor } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-03-01' }
const PREFIX = 'team/acme'

type World = { readonly here: Workspace; readonly bucket: Bucket; readonly parts: PipelineParts }

async function world(extract: PipelineParts['extract'] = {}): Promise<World & { readonly double: S3Double }> {
  const { double, env } = await startBucket()
  return { ...(await worldOf(bucketOf(double, env), extract)), double }
}

async function azureWorld(extract: PipelineParts['extract'] = {}): Promise<World> {
  for (const name of Object.keys(process.env)) if (name.startsWith('AZURE_')) vi.stubEnv(name, undefined)
  return worldOf(await startContainer(), extract)
}

async function worldOf(bucket: Bucket, extract: PipelineParts['extract']): Promise<World> {
  const { env, address } = bucket
  onTestFinished(() => bucket.close())
  // Commands that run in this process read these variables.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const windows = { ...RANGE, every: 'month' }
  const parts = {
    extract: { domains: DOMAINS, windows, page_size: 20, ...extract },
    load: { path: `${address}/${PREFIX}` },
  }
  return { here: await newWorkspace(parts, {}, env), bucket, parts }
}

async function expectEveryRowOnce({ here, bucket, ...at }: World): Promise<void> {
  const folder = scratchFolder()
  await bucket.mirror(PREFIX, folder)
  const wanted = expectedOfDomains(here.sandbox, DOMAINS, RANGE)
  expectSame(await readParquet(folder), wanted)
  const { value } = await here.json('verify')
  expect(value).toMatchObject({ ok: true, rows: wanted.length, problems: [] })
  if ('double' in at) expect((at.double as S3Double).uploads(BUCKET)).toEqual([])
  expect((await bucket.names()).filter((name) => /\/(?:open|lock)/.test(name))).toEqual([])
}

// Every store is held to the same rules (`test/store`), so by default this only exports.
// The emulator of Azure is among the packages of `test:all`.
describe.each([{ store: 'S3', world }, ...(THOROUGH ? [{ store: 'Azure Blob', world: azureWorld }] : [])])(
  'a data set in $store',
  ({ world }) => {
    it('is exported in as many runs as the budget takes, and no page is requested twice', async () => {
      const at = await world({ max_requests: 2, concurrency: 2 })
      const { here, bucket } = at
      let [runs, sent] = [0, 0]
      for (let code: number | null = null; code !== 0; runs++) {
        const ended = await here.run()
        code = ended.code
        expect([0, 4], ended.stderr).toContain(code)
        sent += ended.summary.requests
        expect(await bucket.names(`${PREFIX}/_SUCCESS`)).toHaveLength(code === 0 ? 1 : 0)
        expect(ended.summary.manifest).toBe(`${bucket.address}/${PREFIX}/_manifest.json`)
      }
      expect(runs).toBeGreaterThan(1)
      expect(here.searches()).toHaveLength(sent)
      await expectEveryRowOnce(at)
      expect(await here.run()).toMatchObject({ code: 0, summary: { requests: 0, rows: 0 } })
    })

    it.runIf(THOROUGH)('is loaded into tables, queried in SQL, signed, packed and pruned', async () => {
      const { here, bucket } = await world()
      const { summary } = await here.run()
      const loaded = await here.json('load', '--to', 'duckdb:leaks.db')
      const shards = { loaded: 4, skipped: 0 }
      expect(loaded.value, loaded.stderr).toMatchObject({ rows: summary.rows, shards })
      for (const source of [[], ['--in', 'duckdb:leaks.db']]) {
        const { value } = await here.json('query', 'SELECT count(*) AS n FROM credentials', ...source)
        expect(value).toEqual([{ n: summary.rows }])
      }
      writeKeyPair(here.folder)
      for (const [command, ...flags] of [
        ['sign', '--key', 'key.pem'],
        ['verify', '--signature', '--key', 'pub.pem'],
        ['evidence', '--output', 'evidence.tar'],
        ['prune', '--older-than', '12mo', '--yes'],
      ] as const)
        await exits(0, here.call(command, ...flags))
      // Everything is pruned: one shard without rows is left.
      expect(await bucket.names(`${PREFIX}/credentials`)).toHaveLength(1)
      const { value } = await exits(0, here.json('verify', '--complete'))
      expect(value).toMatchObject({ rows: 0, shards: 1 })
      expect((await bucket.names()).filter((name) => /\/(?:open|lock)/.test(name))).toEqual([])
      expect(await here.run()).toMatchObject({ code: 0, summary: { requests: 0 } })
    })
  },
)

it.runIf(THOROUGH)('a manifest that another writer changes again and again is not overwritten', async () => {
  const { here, double } = await world()
  await exits(0, here.run())
  const edit = () => editObjects(double, /_manifest\.json/, (text) => `${text}\n`)
  double.cues.before({ operation: 'PutObject', key: /_manifest\.json/ }, edit, { times: 5 })
  await exits(5, here.run(), '_manifest.json')
  await exits(0, here.run())
})

/** Others, and those of Azure Blob: `test/s3/errors-are-retried-or-reported`, `test/azure/errors-are-reported`. */
const REJECTED = 'The store rejects the access key, the secret access key or the session token'
const REFUSED_BY_S3 = [
  ['no credentials', { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, 2, 'There are no credentials'],
  ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'wrong-but-secret' }, 3, REJECTED],
] as const

it.each(some(REFUSED_BY_S3, 1))(
  '%s: the message says what to do, and no search is sent',
  async (_, env, code, word) => {
    const at = await world()
    const own = { ...at.bucket.env, AWS_EC2_METADATA_DISABLED: 'true', ...env }
    for (const [name, value] of Object.entries(own)) vi.stubEnv(name, value)
    const here = await workspaceFor(at.here.sandbox, at.parts, own)
    for (const command of ['plan', 'run']) {
      const { stdout, stderr } = await exits(code, here.call(command), word)
      expect(stderr).not.toContain('wrong-but-secret')
      expect(stdout).toBe('')
    }
    expect(here.searches()).toEqual([])
  },
)
