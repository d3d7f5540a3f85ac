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

/** What requests wait for at present. Times are epoch ms; null: no request waits for this. */
export type Waits = {
  /** The earliest retry. */
  readonly retry: RetryWait | null
  /** The number of requests that wait for their retry. */
  readonly retries: number
  /** When the reading or renewal of the token began. */
  readonly tokenSinceMs: number | null
  /** When the oldest request in flight began to wait for its response. */
  readonly responseSinceMs: number | null
}

/** Records what the requests of a service wait for. */
export class CurrentWaits {
  readonly #now: () => number
  readonly #onChange: () => void
  // Each in the order of beginning.
  readonly #tokens = new Set<{ readonly sinceMs: number }>()
  readonly #responses = new Set<{ readonly sinceMs: number }>()
  readonly #retries = new Set<RetryWait>()

  /** @param onChange called when a wait begins and when it ends */
  constructor(now: () => number, onChange: () => void) {
    this.#now = now
    this.#onChange = onChange
  }

  /** @returns a function to call when the token is there, or will not come */
  token(): () => void {
    return this.#enter(this.#tokens, { sinceMs: this.#now() })
  }

  /** @returns a function to call when the response is there, or will not come */
  response(): () => void {
    return this.#enter(this.#responses, { sinceMs: this.#now() })
  }

  /** @returns a function to call after the wait */
  retry(wait: Omit<RetryWait, 'untilMs'>, waitMs: number): () => void {
    return this.#enter(this.#retries, { ...wait, untilMs: this.#now() + waitMs })
  }

  get waits(): Waits {
    const [token] = this.#tokens
    const [response] = this.#responses
    let retry: RetryWait | null = null
    for (const each of this.#retries) if (retry === null || each.untilMs < retry.untilMs) retry = each
    return {
      retry,
      retries: this.#retries.size,
      tokenSinceMs: token?.sinceMs ?? null,
      responseSinceMs: response?.sinceMs ?? null,
    }
  }

  #enter<T>(waiting: Set<T>, wait: T): () => void {
    waiting.add(wait)
    this.#onChange()
    return () => {
      if (waiting.delete(wait)) this.#onChange()
    }
  }
}
