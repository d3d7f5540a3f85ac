import { expect, it } from 'vitest'
import { newWorkspace } from '../e2e/support/workspace.ts'

// Emits warnings while anybody listens, as libraries do about deprecations or too many listeners.
const WARNING =
  "process.on('newListener',(e)=>e==='warning'&&setInterval(()=>process.emitWarning('by a library'),1).unref())"

it('warnings of libraries are in the debug log, and never on stderr', async () => {
  const here = await newWorkspace(
    {},
    {},
    { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WARNING)}` },
  )
  const quiet = await here.cli('status', 'pipeline.yaml')
  expect(quiet.code, quiet.stderr).toBe(0)
  expect(quiet.stderr).toBe('')
  const debug = await here.cli('status', 'pipeline.yaml', '--log-level', 'debug')
  expect(debug.stderr).toContain('Warning: by a library')
})
