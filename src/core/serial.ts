/** Runs tasks one at a time, in the order of the calls. */
export type Serial = <T>(task: () => Promise<T>) => Promise<T>

/**
 * A mutex: each task begins when the one before it has ended.
 * @param afterFailure `continue`: a task that fails does not concern those behind it; `stop`: all of them fail with its error
 */
export function serial(afterFailure: 'continue' | 'stop' = 'continue'): Serial {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task)
    // Nobody has to wait for a result: a failure that nobody sees is no unhandled rejection.
    const seen = result.catch(() => {})
    last = afterFailure === 'stop' ? result : seen
    return result
  }
}
