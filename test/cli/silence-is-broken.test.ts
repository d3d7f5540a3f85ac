import { Writable } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { progressOf, showStatus } from '../../src/cli/progress/show-status.ts'
import { Screen } from '../../src/cli/terminal/screen.ts'

function screenOn(stream: object) {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  let text = ''
  const written = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk
      done()
    },
  })
  const screen = new Screen(Object.assign(written, stream) as unknown as NodeJS.WriteStream, {})
  return { screen, text: () => text }
}

it.each(['pretty', 'json'] as const)(
  'without a terminal, a command says each half minute how far it is: %s',
  (format) => {
    const { screen, text } = screenOn({})
    const logged: unknown[] = []
    const log = (...line: unknown[]): void => void logged.push(line)
    screen.progress = progressOf(screen, { format, level: 'info' }, false)
    showStatus('verify', { screen, log, logging: { format, level: 'info' } })
    vi.advanceTimersByTime(29_999)
    expect(text()).toBe('')
    vi.advanceTimersByTime(1)
    expect(text()).toBe('verify: at work for 0:30\n')
    screen.isAt('shard 3: a.parquet')
    screen.write('something else\n')
    vi.advanceTimersByTime(30_000)
    expect(text()).toBe('verify: at work for 0:30\nsomething else\nshard 3: a.parquet\n')
    screen.status = () => ({ text: 'acme: 3 rows', fields: { rows: 3 } })
    vi.advanceTimersByTime(30_000)
    expect(text().endsWith('acme: 3 rows\n')).toBe(format === 'pretty')
    expect(logged).toEqual(format === 'json' ? [['info', 'progress', { event: 'progress', rows: 3 }]] : [])
  },
)

it.each([{}, { isTTY: true, columns: 80, rows: 24 }])('--no-progress: nothing, on %j', (stream) => {
  const { screen, text } = screenOn(stream)
  screen.progress = progressOf(screen, { format: 'pretty', level: 'info' }, true)
  showStatus('run', { screen, log: () => {}, logging: { format: 'pretty', level: 'info' } })
  screen.show('a line')
  screen.isAt('shard 3: a.parquet')
  vi.advanceTimersByTime(90_000)
  expect(text()).toBe('')
})

it('on a terminal the status is redrawn in place, cut to it, until the work is over', () => {
  const { screen, text } = screenOn({ isTTY: true, columns: 20, rows: 24 })
  screen.progress = progressOf(screen, { format: 'pretty', level: 'info' }, false)
  showStatus('verify', { screen, log: () => {}, logging: { format: 'pretty', level: 'info' } })
  vi.advanceTimersByTime(1000)
  expect(text()).toBe('')
  screen.isAt('shard 3: credentials/a.parquet')
  vi.advanceTimersByTime(250)
  expect(text()).toBe('\r\x1b[Kshard 3: credent…')
  screen.clear()
  const cleared = text()
  vi.advanceTimersByTime(1000)
  expect(text()).toBe(cleared)
})
