import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { sendJson, serve } from '../extract/support.ts'

const EMAIL = 'ada.loam@scatterholt.com'

it.each([
  ['keep', true],
  ['hmac', false],
  ['drop', false],
])(
  'under identity: %s an error that contains the address of a query is shown whole: %s',
  async (identity, isShown) => {
    const server = await serve(({ body }, response) =>
      sendJson(response, { error: { code: 'BAD', message: `no: ${body}` } }, { status: 422 }),
    )
    const folder = await mkdtemp(join(tmpdir(), 'spillway-run-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = `name: trial
service: { base_url: '${server.url}', retries: 0 }
extract: { queries: [{ type: email, email: ${EMAIL}, as: case-17 }] }
transform: { identity: ${identity} }
load: { path: out }
`
    await writeFile(join(folder, 'p.yaml'), file)
    const pipeline = await readPipeline('p.yaml', { env: {}, cwd: folder })
    const logged: unknown[] = []
    const onLog = (...line: unknown[]) => void logged.push(line)
    const env = { SPILLWAY_TOKEN: 'token', SPILLWAY_MASK_KEY: 'k'.repeat(40) }
    const { failures } = await runPipeline(pipeline, await runOptions(pipeline, { env, onLog }))
    expect(server.received[0]?.body).toContain(EMAIL)
    expect(failures).toHaveLength(1)
    expect(failures[0]).toMatchObject({ partition: 'email.case-17/all' })
    const checkpoint = await readFile(join(folder, 'out/_state/checkpoint.jsonl'), 'utf8')
    const failed = checkpoint.split('\n').filter((line) => line.includes('"state":"failed"'))
    for (const text of [JSON.stringify(failures), JSON.stringify(logged), failed.join()])
      expect(text.includes(EMAIL)).toBe(isShown)
  },
)
