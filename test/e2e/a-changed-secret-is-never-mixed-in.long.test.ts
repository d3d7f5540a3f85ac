import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { credential, startService } from '../fault/hostile-service.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { exits } from '../support/run-cli.ts'
import { COMMON_PASSWORDS, type Sandbox, startSandbox } from '../support/sandbox.ts'
import { type PipelineParts, SMALL, type Workspace, workspaceFor } from '../support/workspace.ts'

const [FIRST, SECOND] = COMMON_PASSWORDS as readonly [string, string]
const MASK_KEY = 'k'.repeat(32)

let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 3000 })
})

function partsFor(secret: string, extract = {}): PipelineParts {
  return {
    extract: { queries: [{ type: 'secret', secret_env: 'LEAKED' }], page_size: 10, ...extract },
    transform: { secret },
  }
}

function idsOf(secret: string): readonly string[] {
  return [...sandbox.expected({ query: { type: 'secret', secret } })].map(({ id }) => String(id)).sort()
}

async function unfinished(secret: string, extract = {}): Promise<Workspace> {
  const env = { LEAKED: FIRST, SPILLWAY_MASK_KEY: MASK_KEY }
  const here = await workspaceFor(sandbox, partsFor(secret, extract), env)
  await exits(4, here.run('--max-requests', '2'))
  return here
}

const MONTHS = { windows: { from: '2024-01-01', until: '2025-01-01', every: 'month' }, concurrency: 1 }
it.each([{}, MONTHS])(
  'a refused cursor ends the partition, and the windows after it as well, and names the variable: %o',
  async (extract) => {
    const here = await unfinished('redact', extract)
    const rows = await rowsSoFar(here)
    for (const _again of [1, 2]) {
      const said = 'it is not known whether LEAKED still holds the secret whose rows are exported'
      const ended = await exits(1, here.with({ LEAKED: SECOND }).run(), said, 'restore it')
      expect(ended.summary).toMatchObject({ status: 'failed', rows: 0, requests: 1 })
    }
    const status = await here.json('status')
    expect(JSON.stringify(status.value)).toContain('LEAKED still holds')
    expect(await rowsSoFar(here)).toBe(rows)
    await exits(0, here.run())
    expect((await here.rows()).map(({ id }) => id).sort()).toEqual(idsOf(FIRST))
  },
)

const rowsSoFar = async (here: Workspace): Promise<number> => (await here.json('status')).value.totals.rows

it('a secret file that changes during a run changes nothing for that run', async () => {
  const file = join(scratchFolder(), 'secret')
  writeFileSync(file, FIRST)
  const secrets: string[] = []
  const service = await startService(({ body, json }) => {
    secrets.push(body.query.secret)
    // From the second page on the file holds another secret.
    writeFileSync(file, SECOND)
    const page = Number(body.from ?? 0)
    const at = Date.parse(body.filters.imported_at.gte) + 1000 * (page + 1)
    const item = credential(secrets.length, { imported_at: new Date(at).toISOString() })
    json({ items: [item], next: page < 11 ? String(page + 1) : null })
  })
  const windows = { from: '2024-01-01', until: '2024-05-01', every: 'month' }
  const here = await workspaceFor(sandbox, partsFor('hmac', { windows, concurrency: 1 }), {
    SPILLWAY_BASE_URL: service.baseUrl,
    LEAKED_FILE: file,
    SPILLWAY_MASK_KEY: MASK_KEY,
  })
  await exits(0, here.run())
  expect(secrets).toEqual(Array(12).fill(FIRST))
  const values = new Set((await here.rows()).map(({ query_value }) => query_value))
  expect(values.size).toBe(1)
})
