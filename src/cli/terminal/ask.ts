import { ExportError } from '../../core/index.ts'
import type { Screen } from './screen.ts'

/**
 * Has questions answered on the terminal.
 * @param unchanged what Ctrl-C left as it was, for the message
 * @returns null when the input, with Ctrl-D for one, ends before all is answered
 * @throws ExportError `interrupted` on Ctrl-C
 */
export async function asking<Result>(
  screen: Screen,
  unchanged: string,
  work: (ask: (question: string) => Promise<string>) => Promise<Result>,
): Promise<Result | null> {
  const { createInterface } = await import('node:readline/promises')
  const reader = createInterface({ input: process.stdin, output: screen.stream })
  const abort = new AbortController()
  let interrupted = false
  reader.on('SIGINT', () => {
    interrupted = true
    abort.abort()
  })
  reader.on('close', () => abort.abort())
  try {
    return await work((question) => reader.question(question, { signal: abort.signal }))
  } catch (error) {
    if (!abort.signal.aborted) throw error
    screen.write('\n')
    if (interrupted) throw new ExportError('interrupted', unchanged, '', 'Run it again any time.')
    return null
  } finally {
    reader.close()
  }
}

/**
 * Asks a question on the terminal; only a clear yes is one.
 * @throws ExportError `interrupted` on Ctrl-C
 */
export async function confirm(question: string, screen: Screen): Promise<boolean> {
  const answer = await asking(screen, 'Nothing was changed', (ask) => ask(`${question} [y/N] `))
  return /^\s*y(?:es)?\s*$/i.test(answer ?? '')
}
