import { expect, it, onTestFinished } from 'vitest'
import { BUCKET, startBucket } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

/** Does something while anybody listens to warnings, as libraries do about deprecations or too many listeners. */
function doing(what: string) {
  const script = `process.on('newListener',(e)=>e==='warning'&&setInterval(()=>${what},1).unref())`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` }
}

it('warnings of libraries are in the debug log, and never on stderr', async () => {
  const here = await newWorkspace({}, {}, doing("process.emitWarning('by a library')"))
  expect(await here.call('status')).toMatchObject({ code: 0, stderr: '' })
  const debug = await here.call('status', '--log-level', 'debug')
  expect(debug.stderr).toContain('Warning: by a library')
})

it.runIf(THOROUGH)(
  'so is what the S3 client says of the Node.js that later releases of it need',
  async () => {
    const { double, env } = await startBucket()
    onTestFinished(() => double.close())
    const here = await newWorkspace({ load: { path: `s3://${BUCKET}/set` } }, {}, env)
    expect(await here.call('status')).toMatchObject({ code: 0, stderr: '' })
    const debug = await here.call('status', '--log-level', 'debug')
    const isOld = Number.parseInt(process.versions.node, 10) < 22
    expect(debug.stderr.includes('NodeVersionSupportWarning')).toBe(isOld)
  },
)

it('so is what they print, and traces of theirs are off: they hold passwords', async () => {
  const here = await newWorkspace({}, {}, doing("console.warn('printed by a library')"))
  expect((await here.call('status', '--log-format', 'json')).stderr).toBe('')
  const debug = await here.call('status', '--log-level', 'debug')
  expect(debug.stderr).toContain('printed by a library')
  const env = { NODE_OPTIONS: '--no-deprecation', DEBUG: 'ioredis:*', AZURE_LOG_LEVEL: 'verbose' }
  const SPILLWAY_QUEUE_URL = 'redis://:correct-horse@127.0.0.1:1'
  const traced = await newWorkspace({}, {}, { ...env, SPILLWAY_QUEUE_URL })
  const { stderr } = await exits(1, traced.cli('submit', 'pipeline.yaml'))
  expect(stderr).not.toMatch(/ioredis:|correct-horse/)
})
