import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectedRows, expectSame, type Masking } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { COMMON_PASSWORDS, type Sandbox, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { SMALL, workspaceFor } from '../support/workspace.ts'

const KEY = 'a key of more than thirty-two bytes, ümläuts included'
const LEAKED = COMMON_PASSWORDS[5]!
const QUERIES: readonly SearchQuery[] = [
  { type: 'domain', fqdn: 'scatterholt.com' },
  { type: 'secret', secret: LEAKED },
]

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 200, nastyRate: 0.2, invalidRate: 0.1 })
})

const policies: readonly (Masking & { format: 'parquet' | 'csv' })[] = [
  { secret: 'redact', identity: 'keep', format: 'parquet' },
  { secret: 'drop', identity: 'hmac', format: 'csv' },
  { secret: 'partial', identity: 'drop', format: 'parquet' },
  { secret: 'hmac', identity: 'keep', format: 'csv' },
  { secret: 'hmac', identity: 'hmac', format: 'parquet' },
  { secret: 'plaintext', identity: 'drop', format: 'csv' },
]

describe.each(some(policies, 3))(
  'secret: $secret, identity: $identity, as $format',
  ({ secret, identity, format }) => {
    it('every value is masked by the policy, and no file or output holds the original', async () => {
      const here = await workspaceFor(
        sandbox,
        {
          extract: {
            domains: ['scatterholt.com'],
            queries: [{ type: 'secret', secret_env: 'LEAKED_PASSWORD' }],
            page_size: 100,
          },
          transform: { secret, identity },
          load: { format },
        },
        { LEAKED_PASSWORD: LEAKED, SPILLWAY_MASK_KEY: KEY },
      )
      const consent = secret === 'plaintext' ? ['--allow-plaintext'] : []
      const ended = await exits(0, here.run(...consent, '--log-level', 'trace'))

      const masking = { secret: secret!, identity: identity!, key: KEY }
      const wanted = QUERIES.flatMap((query) => expectedRows(sandbox, { query, masking }))
      const found = await here.rows()
      expectSame(found, wanted)

      const { masking: recorded, columns } = await here.manifest()
      expect(recorded).toEqual({ secret, identity })
      const names = columns.map(({ name }) => name)
      expect(names.includes('hash')).toBe(secret !== 'drop')
      expect(names.includes('identity_name')).toBe(identity !== 'drop')

      const verified = await exits(0, here.call('verify'))
      if (secret === 'plaintext') return
      const outside = `${ended.stdout}${ended.stderr}${verified.stdout}${verified.stderr}`
      for (const text of [outside, ...(await everyFile(here.output))]) {
        expect(text.includes(LEAKED)).toBe(false)
        expect(text.includes(KEY)).toBe(false)
      }
    })
  },
)

/** Contents and names of all files. */
async function everyFile(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  return [files.join('\n'), ...(await Promise.all(files.map((file) => readFile(file, 'latin1'))))]
}
