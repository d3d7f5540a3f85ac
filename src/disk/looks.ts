import type { Look, Looks } from '../core/index.ts'
import { canStartThreads, openThread, type Thread } from '../threads/index.ts'
import { look } from './look.ts'

// Some ten milliseconds of work on a local disk.
const BATCH = 1000
// As many as Node.js has for asynchronous calls of its own: on a network disk they mostly wait.
const THREADS = 4

/** Looks at up to a thousand files and folders in this thread, at more of them in others. */
export function looks(root: string): Looks {
  let threads: readonly Thread[] | null = null
  let batch: Look[] = []
  const answers: Promise<readonly Look[]>[] = []

  const send = (): void => {
    threads ??= Array.from({ length: canStartThreads ? THREADS : 0 }, () =>
      openThread(new URL('./look-worker.js', import.meta.url), root),
    )
    const thread = threads[answers.length % threads.length]
    const answer =
      thread === undefined
        ? Promise.resolve(look(root, batch))
        : thread.ask<Look[]>('look', [JSON.stringify(batch)])
    // Whoever closes before the end has no more use for it.
    answer.catch(() => {})
    answers.push(answer)
    batch = []
  }

  return {
    add(expected) {
      if (batch.length === BATCH) send()
      batch.push(expected)
    },
    async different() {
      const last = look(root, batch)
      return (await Promise.all(answers)).flat().concat(last)
    },
    async close() {
      await Promise.all(threads?.map((thread) => thread.close()) ?? [])
    },
  }
}
