import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { start, workFolder } from './spillway.ts'

it('the demo exports a few hundred thousand credentials without a token or a network', async () => {
  const folder = workFolder()
  const { code, stdout, stderr } = await start(['demo'], folder).result
  expect(code).toBe(0)
  expect(stderr).toContain('4 made-up domains')
  expect(stdout).toMatch(/^demo: complete in /)
  expect(stdout).toMatch(/rows +300,000 /)
  expect(readdirSync(join(folder, 'output/demo'))).toContain('_SUCCESS')
  // And on into a table, which is asked.
  expect(stdout).toMatch(/ load pipelines\/demo\.yaml --to duckdb:output\/demo\.db\n.*300,000 rows loaded/)
  expect(stdout).toMatch(
    / query pipelines\/demo\.yaml --in duckdb:output\/demo\.db ".*"\n {2}source_name +credentials\n/,
  )
})
