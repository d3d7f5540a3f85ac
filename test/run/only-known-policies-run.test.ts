import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { readPlan } from '../../src/data-set/index.ts'
import { type Pipeline, readPipeline, runPipeline, verifyDataSet } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { readStatus, verifyAs } from '../support/rooms.ts'
import { type CredentialJson, type Sandbox, startSandbox } from '../support/sandbox.ts'
import { SMALL, type Workspace, workspaceFor } from '../support/workspace.ts'

const EMAIL = { type: 'email', email: 'ada.loam@scatterholt.com' } as const
const DOMAINS = ['scatterholt.com', 'quillmere.net']
const KEY = Buffer.from('a key of more than thirty-two bytes')

let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, nastyRate: 0, nullRate: 0 })
})

async function world(): Promise<{ here: Workspace; pipeline: Pipeline }> {
  const here = await workspaceFor(sandbox, { load: { format: 'csv' } })
  return { here, pipeline: await readPipeline('pipeline.yaml', { env: here.env, cwd: here.folder }) }
}

type Transform = { [K in keyof Pipeline['transform']]?: unknown }

/** What a program without types, or with casts, can do to a pipeline. */
function changed(pipeline: Pipeline, transform: Transform, extract: object = {}): Pipeline {
  return {
    ...pipeline,
    extract: { ...pipeline.extract, ...extract },
    transform: { ...pipeline.transform, ...transform } as Pipeline['transform'],
  }
}

/** Expects a run to be refused before it sends a request or writes a file, whatever it is given. */
async function expectRefusal(
  { here, pipeline }: { here: Workspace; pipeline: Pipeline },
  given: object = {},
): Promise<string> {
  const before = sandbox.requests.length
  const settings = { env: here.env, maskKey: KEY, allowPlaintext: true }
  const options = { ...(await runOptions(pipeline, settings)), ...given }
  const error = await runPipeline(pipeline, options).catch((error: unknown) => error)
  if (!isExportError(error, 'config')) throw error
  expect(sandbox.requests.length).toBe(before)
  await expect(access(here.output)).rejects.toThrow('ENOENT')
  return error.message
}

const NOT_KNOWN = /^transform\.(secret|identity|on_invalid) is not a known policy/
const NO_POLICIES = ['PLAINTEXT', 'constructor', undefined]
const NO_SHARE = { kind: 'share', percent: Number.NaN }
const NO_LIMITS = [undefined, '1%', NO_SHARE]
const NO_KEYS = [null, 'k'.repeat(40), Buffer.alloc(31, 'k'), Buffer.alloc(40, ' \n')]

/** What is changed, what is given to the run, and what it says. */
const REFUSED: readonly (readonly [Transform, object, RegExp])[] = [
  ...NO_POLICIES.flatMap((value) =>
    ['secret', 'identity', 'onInvalid'].map((key) => [{ [key]: value }, {}, NOT_KNOWN] as const),
  ),
  ...NO_LIMITS.map((maxQuarantined) => [{ maxQuarantined }, {}, /max_quarantined is no limit/] as const),
  ...[undefined, 'yes'].map(
    (allowPlaintext) => [{ secret: 'plaintext' }, { allowPlaintext }, /not given leave/] as const,
  ),
  ...NO_KEYS.flatMap((maskKey) =>
    [{ secret: 'hmac' }, { identity: 'hmac' }].map((policy) => [policy, { maskKey }, /masking/] as const),
  ),
  [{ onInvalid: () => 'fail' }, {}, /The pipeline holds a value that cannot be copied/],
]

describe('a pipeline that was not read from a file', () => {
  it.each(REFUSED)('is refused with %j and %j', async (transform, given, told) => {
    const { here, pipeline } = await world()
    expect(await expectRefusal({ here, pipeline: changed(pipeline, transform) }, given)).toMatch(told)
  })

  it('is refused when the name of a query contains a hidden value', async () => {
    const { here, pipeline } = await world()
    const hidden = changed(pipeline, { identity: 'drop' }, { queries: [EMAIL] })
    const message = await expectRefusal({ here, pipeline: hidden })
    expect(message).not.toContain('ada')
    const options = await runOptions(hidden, { env: here.env })
    for (const read of [() => readStatus(hidden), () => readPlan(hidden, options)])
      await expect(read()).rejects.toSatisfy((error) => isExportError(error, 'config'))
  })

  it('is refused when two queries share a name', async () => {
    const { here, pipeline } = await world()
    const queries = DOMAINS.map((fqdn) => ({ type: 'domain', fqdn, as: 'ours' }))
    const message = await expectRefusal({ here, pipeline: changed(pipeline, {}, { queries }) })
    expect(message).toContain('domain.ours')
  })
})

it('no change of the pipeline, as soon as its run is called, changes the run', async () => {
  const { here, pipeline } = await world()
  const given = structuredClone(pipeline)
  const running = runPipeline(pipeline, { env: here.env })
  Object.assign(pipeline.load.location, { root: join(here.folder, 'elsewhere') })
  Object.assign(pipeline.load, { path: join(here.folder, 'elsewhere'), partitionBy: [] })
  Object.assign(pipeline.load.format, { kind: 'parquet' })
  Object.assign(pipeline.service.addresses, { search_path: '/nowhere' })
  Object.assign(pipeline.service, { baseUrl: 'http://127.0.0.1:1' })
  Object.assign(pipeline.extract.windows ?? {}, { every: null })
  ;(pipeline.extract.queries as unknown[]).length = 0
  Object.assign(pipeline.transform, { secret: 'plaintext', identity: 'drop' })
  const summary = await running
  expect(summary).toMatchObject({ status: 'complete', manifest: join(here.output, '_manifest.json') })
  expect(summary.rows).toBeGreaterThan(0)
  expect(await verifyDataSet(given)).toMatchObject({ ok: true, rows: summary.rows })
  expect(await here.manifest()).toMatchObject({ format: 'csv', totals: { rows: summary.rows } })
  await expect(access(join(here.folder, 'elsewhere'))).rejects.toThrow('ENOENT')
})

it('verify finds a query value that the policy hides', async () => {
  const { here, pipeline } = await world()
  const someone = [...sandbox.expected({ query: { type: 'domain', fqdn: 'scatterholt.com' } })]
    .map((item) => (item as CredentialJson).identity_name)
    .find((name) => /^[a-z.]+@/.test(name))!
  const columns = ['id', 'query_value']
  const email = { type: 'email', email: someone, as: 'case-17' }
  const kept = changed(pipeline, { columns }, { queries: [email, { type: 'domain', fqdn: 'quillmere.net' }] })
  const options = await runOptions(kept, { env: here.env })
  expect((await runPipeline(kept, options)).status).toBe('complete')
  expect((await verifyDataSet(kept)).ok).toBe(true)
  for (const identity of ['hmac', 'drop']) {
    const { problems } = await verifyAs({ ...kept, transform: { ...kept.transform, identity } as never })
    const path = expect.stringContaining('query=email.case-17/')
    const problem = expect.stringMatching(/^\d+ values of query_value are not masked$/)
    expect(problems).toEqual([{ path, problem, cause: 'unmasked' }])
  }
})
