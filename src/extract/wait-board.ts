/** A request that failed and waits for its retry. */
type RetryWait = {
  /** The number of the retry, from 1 on, and the limit. */
  readonly number: number
  readonly of: number
  /** Epoch ms. */
  readonly untilMs: number
  /** Why the last attempt failed. */
  readonly reason: string
}

/** What pages wait for at present, besides permits. Times are epoch ms; null: no page waits for this. */
export type Waits = {
  /** The earliest retry. */
  readonly retry: RetryWait | null
  /** The number of requests that wait for their retry. */
  readonly retries: number
  /** When the reading or renewal of the token began. */
  readonly tokenSinceMs: number | null
  /** When the oldest request in flight began to wait for its response. */
  readonly responseSinceMs: number | null
  /** When the oldest commit in progress began. */
  readonly diskSinceMs: number | null
}

type Since = { readonly ms: number }

/** Records what the pages of a run wait for. */
export class WaitBoard {
  readonly #now: () => number
  // Each in the order of beginning.
  readonly #since = { token: new Set<Since>(), response: new Set<Since>(), disk: new Set<Since>() }
  readonly #retries = new Set<RetryWait>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** @returns a function to call when the wait is over */
  begin(what: 'token' | 'response' | 'disk'): () => void {
    return this.#enter(this.#since[what], { ms: this.#now() })
  }

  /** @returns a function to call after the wait */
  retry(wait: Omit<RetryWait, 'untilMs'>, waitMs: number): () => void {
    return this.#enter(this.#retries, { ...wait, untilMs: this.#now() + waitMs })
  }

  get waits(): Waits {
    const { token, response, disk } = this.#since
    let retry: RetryWait | null = null
    for (const each of this.#retries) if (retry === null || each.untilMs < retry.untilMs) retry = each
    return {
      retry,
      retries: this.#retries.size,
      tokenSinceMs: firstOf(token),
      responseSinceMs: firstOf(response),
      diskSinceMs: firstOf(disk),
    }
  }

  #enter<T>(waiting: Set<T>, wait: T): () => void {
    waiting.add(wait)
    return () => waiting.delete(wait)
  }
}

function firstOf([first]: Iterable<Since>): number | null {
  return first?.ms ?? null
}
