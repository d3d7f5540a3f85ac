import { expect, it } from 'vitest'
import { reportError } from '../../src/cli/log/log.ts'
import { Screen, styleFor } from '../../src/cli/terminal/screen.ts'
import { Collector } from '../support/in-this-process.ts'

// Other defects: the-process-can-run-at-all.
it('an error of the system shows its code', () => {
  const stderr = new Collector()
  const screen = new Screen(stderr as unknown as NodeJS.WriteStream, {})
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' })
  const logging = { format: 'pretty', level: 'info' } as const
  reportError(error, { screen, style: styleFor(false), logging, log: () => {} })
  expect(stderr.text).toContain('no space left on device')
})
