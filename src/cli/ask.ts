import { createInterface } from 'node:readline/promises'
import { ExportError } from '../core/index.ts'
import type { Screen } from './screen.ts'

/**
 * Has questions answered on the terminal.
 * @throws ExportError `interrupted` on Ctrl-C, `config` when the input ends before all is answered
 */
export async function asking<Result>(
  screen: Screen,
  work: (ask: (question: string) => Promise<string>) => Promise<Result>,
): Promise<Result> {
  const reader = createInterface({ input: process.stdin, output: screen.stream })
  const giveUp = new AbortController()
  let interrupted = false
  reader.on('SIGINT', () => {
    interrupted = true
    giveUp.abort()
  })
  reader.on('close', () => giveUp.abort())
  try {
    return await work((question) => reader.question(question, { signal: giveUp.signal }))
  } catch (error) {
    if (!giveUp.signal.aborted) throw error
    screen.write('\n')
    if (interrupted) throw new ExportError('interrupted', 'Nothing was written', '', 'Run it again any time.')
    throw new ExportError(
      'config',
      'The answers ended too early',
      'stdin',
      'Nothing was written. Run it again.',
    )
  } finally {
    reader.close()
  }
}
