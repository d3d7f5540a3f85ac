import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, expectTypeOf, it, test } from 'vitest'
import type { z } from 'zod'
import {
  type Environment,
  type PipelineSettings,
  pipelineFrom,
  readPipeline,
  resolvedSettings,
} from '../../src/pipeline/index.ts'
import type { pipelineFile } from '../../src/pipeline/schema/file-schema.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { read } from './pipeline-file.ts'

const EXAMPLES = join(import.meta.dirname, '../../pipelines')

/** The same pipeline, built in another folder, without variables, from the settings with all defaults. */
async function expectTheSame(file: string, cwd: string, env: Environment): Promise<void> {
  const pipeline = await readPipeline(file, { env, cwd })
  const settings = JSON.stringify(await resolvedSettings(file, { env, cwd }))
  const there = await pipelineFrom(settings, { env: {}, cwd: scratchFolder() })
  const { locations } = pipeline
  expect({ ...there, file, locations }).toEqual({
    ...pipeline,
    load: { ...pipeline.load, pathAsGiven: pipeline.load.path },
  })
}

test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))('%s', async (file) => {
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
  await expectTheSame(file, EXAMPLES, env)
})

test('bases, variables, files of domains, paths, and values that look like variables', async () => {
  const env = { URL: 'https://api.example.com/firework', RETRIES: '7', ODD: 'a${URL}$${b', ON: 'true' }
  const cwd = scratchFolder()
  const text = `extends: base.yaml
name: acme
service:
  retries: \${RETRIES}
extract:
  domains: [first.com]
  domains_file: domains.txt
  queries:
    - { type: keyword, keyword: '\${ODD}' }
    - { type: domain, fqdn: third.com, as: third }
  windows: { from: 2024-01-01, until: now, every: 1d }
  page_size: 0x10
transform: { max_quarantined: 5%, extra_columns: [event_uid] }
load:
  path: s3://bucket/acme/
  file_mode: 0o640
  keep: 30d
  s3:
    path_style: \${ON}
x-notes: { any: thing }
`
  const files = {
    'base.yaml': 'service: { base_url: "${URL}", timeout: 30s }\n',
    'domains.txt': 'second.com # 2\n',
  }
  await read(text, { env, cwd, files })
  await expectTheSame('p.yaml', cwd, env)
})

// The compiler checks this file: `npm run check`.
it('the public types of settings are those that the schemas infer', () => {
  expectTypeOf<PipelineSettings>().toEqualTypeOf<z.input<typeof pipelineFile>>()
})
