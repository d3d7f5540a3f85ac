import { expect, it } from 'vitest'
import { reportError } from '../../src/cli/log/log.ts'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { Screen, styleFor } from '../../src/cli/terminal/screen.ts'
import { Collector } from '../support/in-this-process.ts'

function printed(error: unknown, level: 'info' | 'debug'): string {
  const stderr = new Collector()
  const screen = new Screen(stderr as unknown as NodeJS.WriteStream, {})
  reportError(error, { screen, style: styleFor(false), logging: { format: 'pretty', level }, log: () => {} })
  return stderr.text
}

function defect(): unknown {
  try {
    return JSON.parse('{"hash": made-up-secret')
  } catch (error) {
    return error
  }
}

it('an unexpected error is exit 1 and shows its kind alone', () => {
  expect(exitCodeOf(defect(), null)).toBe(1)
  expect(printed(defect(), 'info')).toBe(
    'spillway: An unexpected error: SyntaxError. Add --log-level debug to see where it comes from.\n',
  )
})

it('--log-level debug shows the stack, without the data', () => {
  expect((defect() as Error).message).toContain('made-up')
  expect(printed(defect(), 'debug')).toMatch(/SyntaxError\. \n\s+at /)
  expect(printed(defect(), 'debug')).not.toContain('made-up')
})

it('an error of the system shows its code', () => {
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' })
  expect(printed(error, 'info')).toContain('no space left on device')
})
