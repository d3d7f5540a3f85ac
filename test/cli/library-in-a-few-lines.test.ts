import { expect, it } from 'vitest'
import { isExportError, readPipeline, readStatus, runOptions, runPipeline } from '../../src/index.ts'
import { accessTo, sandboxWith, workFolder, writePipeline } from './spillway.ts'

it('the library runs a pipeline in a few lines', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const env = accessTo(sandbox)
  const pipeline = await readPipeline(await writePipeline(folder), { env, cwd: folder })
  const summary = await runPipeline(pipeline, await runOptions(pipeline, { env }))
  expect(summary).toMatchObject({ status: 'complete', requests: 1 })
  const { totals } = await readStatus(pipeline)
  expect(totals).toMatchObject({ done: 3, rows: summary.rows })
})

it('options without the masking key are rejected', async () => {
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
  const folder = workFolder()
  const file = await writePipeline(folder, { rest: 'transform: { identity: hmac }' })
  const pipeline = await readPipeline(file, { env, cwd: folder })
  await expect(runOptions(pipeline, { env })).rejects.toSatisfy((error) => isExportError(error, 'config'))
  const maskKey = new Uint8Array(32)
  await expect(runOptions(pipeline, { env, maskKey })).resolves.toMatchObject({ maskKey, fresh: false })
})
