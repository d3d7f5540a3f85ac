import { expect, it } from 'vitest'
import { newWorkspace } from '../e2e/support/workspace.ts'

// Warns again and again once somebody listens: as libraries do, of what is deprecated, of too many listeners.
const WARNING =
  "process.on('newListener',(e)=>e==='warning'&&setInterval(()=>process.emitWarning('by a library'),1).unref())"

it('what libraries warn of is in the log of those who ask for it, and on stderr for nobody else', async () => {
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
