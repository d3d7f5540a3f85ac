import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { readPipeline, runPipeline } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { type Sandbox, startSandbox } from '../support/sandbox.ts'
import { SMALL, type Workspace, workspaceFor } from '../support/workspace.ts'

const KEY = 'a key of more than thirty-two bytes'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 40 })
})

type Queries = readonly Readonly<Record<string, string>>[]

async function begin(
  identity: string,
): Promise<{ here: Workspace; run: (queries: Queries) => Promise<string> }> {
  const here = await workspaceFor(sandbox, {})
  return {
    here,
    /** The outcome of a run: its status, or the error that refused it. */
    async run(queries) {
      await here.write({ extract: { queries }, transform: { identity } })
      const env = { ...here.env, SPILLWAY_MASK_KEY: KEY }
      const pipeline = await readPipeline('pipeline.yaml', { env, cwd: here.folder })
      const before = sandbox.requests.length
      try {
        return (await runPipeline(pipeline, await runOptions(pipeline, { env }))).status
      } catch (error) {
        if (!isExportError(error, 'config')) throw error
        expect(sandbox.requests.length).toBe(before)
        return error.what
      }
    },
  }
}

const domain = (fqdn: string, as?: string) => ({ type: 'domain', fqdn, ...(as === undefined ? {} : { as }) })
const email = (email: string, as: string) => ({ type: 'email', email, as })
const ANOTHER = (name: string) => `The data set has ${name} as the name of another query`

it.each(['keep', 'hmac'])('under identity: %s a name that another query had is refused', async (identity) => {
  const { here, run } = await begin(identity)
  const first = [
    email('a@scatterholt.com', 'case'),
    domain('scatterholt.com', 'ours.example'),
    domain('quillmere.net'),
  ]
  expect(await run(first)).toBe('complete')
  expect(await run(first)).toBe('complete')
  expect(await run([email('b@scatterholt.com', 'case')])).toBe(ANOTHER('email.case'))
  // Digests are of the normal form, so that another spelling is the same query.
  expect(await run([email('A@scatterholt.com', 'case')])).toBe(
    identity === 'hmac' ? 'complete' : ANOTHER('email.case'),
  )
  expect(await run([domain('quillmere.net', 'ours.example')])).toBe(ANOTHER('domain.ours.example'))
  // A given name cannot be the default name of another query either, nor the other way round.
  expect(await run([domain('ours.example')])).toBe(ANOTHER('domain.ours.example'))
  expect(await run([domain('scatterholt.com', 'quillmere.net')])).toBe(ANOTHER('domain.quillmere.net'))
  expect(await run([domain('quillmere.net', 'quillmere.net'), email('b@scatterholt.com', 'new')])).toBe(
    'complete',
  )
  expect(await run(first)).toBe('complete')
  const checkpoint = await readFile(join(here.output, '_state/checkpoint.jsonl'), 'utf8')
  expect(checkpoint.match(/"kind":"query"/g)).toHaveLength(4)
  expect(checkpoint.includes('a@scatterholt.com')).toBe(identity === 'keep')
})

it('under identity: drop no digest of the query is kept', async () => {
  const { here, run } = await begin('drop')
  expect(await run([email('a@scatterholt.com', 'case')])).toBe('complete')
  expect(await readFile(join(here.output, '_state/checkpoint.jsonl'), 'utf8')).not.toContain('"kind":"query"')
  expect(await run([email('b@scatterholt.com', 'case')])).toBe('complete')
})

it('names that differ in case or in the form of accents alone are refused, also against what is exported', async () => {
  const { run } = await begin('keep')
  for (const [one, other] of [
    ['Team', 'team'],
    ['caf\u00e9', 'cafe\u0301'],
    ['\u00c9quipe', '\u00e9quipe'],
  ] as const) {
    const what = await run([domain('scatterholt.com', one), domain('quillmere.net', other)])
    expect(what).toMatch(
      /^Two queries have names that some file systems take for the same: domain\.\S+ and domain\.\S+$/,
    )
  }
  expect(await run([email('j.doe@scatterholt.com', 'one')])).toBe('complete')
  expect(await run([domain('scatterholt.com', 'Team')])).toBe('complete')
  expect(await run([domain('quillmere.net', 'team')])).toMatch(/domain\.Team and domain\.team$/)
})
