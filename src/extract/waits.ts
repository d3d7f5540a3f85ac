/** A request that failed and will be sent again. */
export type RetryWait = {
  /** Which retry it is, from 1 on, and how many there may be. */
  readonly number: number
  readonly of: number
  /** Epoch ms. */
  readonly untilMs: number
  /** Why the last attempt failed. */
  readonly reason: string
}

/** What requests wait for at a moment. Times are epoch ms; null: for nothing of the kind. */
export type Waits = {
  /** The retry that comes first. */
  readonly retry: RetryWait | null
  /** How many requests wait for their retry. */
  readonly retries: number
  /** Since when a token is being read or renewed. */
  readonly tokenSinceMs: number | null
  /** Since when the oldest request in flight waits for its response. */
  readonly answerSinceMs: number | null
}

/** Keeps what the requests of a service wait for. */
export class WaitBoard {
  readonly #now: () => number
  readonly #onChange: () => void
  // Each in the order of their beginnings.
  readonly #tokens = new Set<{ readonly sinceMs: number }>()
  readonly #responses = new Set<{ readonly sinceMs: number }>()
  readonly #retries = new Set<RetryWait>()

  /** @param onChange called when something is waited for, and when it has come */
  constructor(now: () => number, onChange: () => void) {
    this.#now = now
    this.#onChange = onChange
  }

  /** @returns to be called when the token is there, or will not come */
  token(): () => void {
    return this.#enter(this.#tokens, { sinceMs: this.#now() })
  }

  /** @returns a function to call when the response is there, or will not come */
  response(): () => void {
    return this.#enter(this.#responses, { sinceMs: this.#now() })
  }

  /** @returns to be called when it is time */
  retry(wait: Omit<RetryWait, 'untilMs'>, waitMs: number): () => void {
    return this.#enter(this.#retries, { ...wait, untilMs: this.#now() + waitMs })
  }

  get waits(): Waits {
    let retry: RetryWait | null = null
    for (const each of this.#retries) if (retry === null || each.untilMs < retry.untilMs) retry = each
    return {
      retry,
      retries: this.#retries.size,
      tokenSinceMs: firstOf(this.#tokens)?.sinceMs ?? null,
      answerSinceMs: firstOf(this.#responses)?.sinceMs ?? null,
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

function firstOf<T>(waiting: ReadonlySet<T>): T | undefined {
  const [first] = waiting
  return first
}
