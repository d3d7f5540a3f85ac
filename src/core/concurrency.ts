export type Serial = <T>(task: () => Promise<T>) => Promise<T>

/** A mutex: tasks run one after the other, also after one that fails. */
export function serial(): Serial {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task)
    last = result.catch(() => {})
    return result
  }
}

// Enough to keep the thread pool of Node.js busy, and a store over a network.
const AT_ONCE = 32

/** Does small tasks concurrently. After a failure no more tasks begin; it waits for those in flight, then throws. */
export async function sideBySide<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]()
  let failed = false
  let next = queue.next()
  const slot = async (): Promise<void> => {
    while (!next.done && !failed) {
      const { value } = next
      next = queue.next()
      try {
        await work(value)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const slots: Promise<void>[] = []
  while (!next.done && !failed && slots.length < AT_ONCE) slots.push(slot())
  await settleAll(slots)
}

/** Waits for all, also when one fails, since they share files or connections. @throws the first failure by index */
export async function settleAll(work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
