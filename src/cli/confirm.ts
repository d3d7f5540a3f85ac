import { ExportError } from '../core/index.ts'
import type { Screen } from './screen.ts'

/**
 * Asks a question on the terminal; only a clear yes is one.
 * @throws ExportError `interrupted` on Ctrl-C
 */
export async function confirm(question: string, screen: Screen): Promise<boolean> {
  const { createInterface } = await import('node:readline/promises')
  const reader = createInterface({ input: process.stdin, output: screen.stream })
  const giveUp = new AbortController()
  let interrupted = false
  reader.on('SIGINT', () => {
    interrupted = true
    giveUp.abort()
  })
  // End of input, Ctrl-D among it, is no answer.
  reader.on('close', () => giveUp.abort())
  try {
    const answer = await reader.question(`${question} [y/N] `, { signal: giveUp.signal })
    return /^\s*y(?:es)?\s*$/i.test(answer)
  } catch (error) {
    if (!giveUp.signal.aborted) throw error
    screen.write('\n')
    if (interrupted) throw new ExportError('interrupted', 'Nothing was changed', '', 'Run it again any time.')
    return false
  } finally {
    reader.close()
  }
}
