import { execFileSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { portOf } from '../support/listening.ts'
import { startSandbox } from '../support/sandbox.ts'
import { blockUnder, ROOT } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

const PAGE = 'docs/logs-and-metrics.md'

const uri = z.url()
const facet = z.looseObject({ _producer: uri, _schemaURL: uri })
const dataset = {
  namespace: z.string().min(1),
  name: z.string().min(1),
  facets: z.record(z.string(), facet).optional(),
}

/** Source: https://openlineage.io/spec/2-0-2/OpenLineage.json, RunEvent; strict where a slip would be ignored. */
const RunEvent = z.strictObject({
  eventType: z.enum(['START', 'RUNNING', 'COMPLETE', 'ABORT', 'FAIL', 'OTHER']),
  eventTime: z.iso.datetime(),
  producer: uri,
  schemaURL: z.literal('https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent'),
  run: z.strictObject({ runId: z.uuid(), facets: z.record(z.string(), facet).optional() }),
  job: z.strictObject({
    namespace: z.string(),
    name: z.string(),
    facets: z.record(z.string(), facet).optional(),
  }),
  inputs: z.array(z.strictObject({ ...dataset, inputFacets: z.record(z.string(), facet).optional() })),
  outputs: z.array(
    z.strictObject({
      ...dataset,
      outputFacets: z.strictObject({
        // …/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json
        outputStatistics: z.strictObject({
          _producer: uri,
          _schemaURL: uri,
          rowCount: z.int(),
          size: z.int(),
          fileCount: z.int(),
        }),
      }),
    }),
  ),
})

const HAS_TOOLS = ['jq', 'curl'].every((tool) => {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

async function receiver() {
  const events: unknown[] = []
  const server = createServer(async (request, response) => {
    const isRight =
      request.url === '/api/v1/lineage' && request.headers.authorization === 'Bearer lineage-key'
    events.push(JSON.parse(await text(request)))
    response.writeHead(isRight ? 201 : 404).end()
  })
  return { url: `http://127.0.0.1:${await portOf(server)}`, events }
}

it.skipIf(!HAS_TOOLS)('a run becomes two events as the published schema has them', async () => {
  const { url, events } = await receiver()
  const yaml = `# acme.yaml
name: acme
service:
  base_url: \${SPILLWAY_BASE_URL}
extract:
  domains: [scatterholt.com]
`
  const settings = { language: 'yaml', text: yaml, under: [] }
  const sandbox = await startSandbox({ records: 12 })
  const access = { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token }
  const shell = newShell({ ...access, OPENLINEAGE_URL: url, OPENLINEAGE_API_KEY: 'lineage-key' })
  copyFileSync(join(ROOT, 'docs/openlineage.jq'), join(shell.folder, 'openlineage.jq'))
  await runBlock(settings, shell)
  await runBlock({ language: 'sh', text: blockUnder(PAGE, 'Lineage', 'sh'), under: [] }, shell)
  const parsed = events.map((event) => RunEvent.parse(event))
  expect(parsed.map(({ eventType }) => eventType)).toEqual(['START', 'COMPLETE'])
  expect(new Set(parsed.map(({ run }) => run.runId)).size).toBe(1)
  const [output] = parsed[1]!.outputs
  expect(output).toMatchObject({ namespace: 'file', name: expect.stringMatching(/output\/acme$/) })
  expect(output!.outputFacets.outputStatistics.rowCount).toBeGreaterThan(0)
  expect(JSON.stringify(parsed)).not.toMatch(/null/)
})
