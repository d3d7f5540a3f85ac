import { type Clock, ExportError, isHeaderText, learnSecret } from '../core/index.ts'

/** The credential of a request. Compared by identity: a renewed token is another object. */
export type Token = {
  readonly header: string
  /** The part that must never be shown. It stays a known secret after another token replaces it. */
  readonly secret: string
  /** Monotonic clock. The token is not used from then on. */
  readonly renewAtMs: number
}

/** Provides the token of requests. Concurrent callers share one read or exchange. */
export type TokenSource = {
  /** The token that is there, if it is neither about to expire nor being replaced. */
  held(): Token | null
  /** The same, or a new one. @throws ExportError `config`, or as the exchange does */
  current(): Promise<Token>
  /** Replaces a rejected token. @returns false: there is no other */
  replace(rejected: Token): Promise<boolean>
}

/** @param obtain reads or exchanges a token; the one that is held, if it is to be had again */
export function tokenSource(
  clock: Pick<Clock, 'monotonicMs'>,
  obtain: (held: Token | null) => Promise<Token>,
): TokenSource {
  let held: Token | null = null
  let pending: Promise<Token> | null = null

  async function renew(): Promise<Token> {
    try {
      held = await obtain(held)
      return held
    } finally {
      pending = null
    }
  }

  function obtainOnce(): Promise<Token> {
    pending ??= renew()
    return pending
  }

  function valid(): Token | null {
    // Not during a renewal: the one in memory may be the rejected one.
    return pending === null && held !== null && clock.monotonicMs() < held.renewAtMs ? held : null
  }

  return {
    held: valid,
    current: async () => valid() ?? obtainOnce(),
    // Another caller may have replaced it.
    replace: async (rejected) => held !== rejected || (await obtainOnce()) !== rejected,
  }
}

/** A token that a variable holds. The same string is the same token: reading it again renews nothing. */
export function givenToken(variable: string, text: string, held: Token | null): Token {
  const secret = headerText(variable, text)
  return held?.secret === secret ? held : newToken(secret, Number.POSITIVE_INFINITY)
}

export function newToken(secret: string, renewAtMs: number): Token {
  learnSecret(secret)
  return { header: `Bearer ${secret}`, secret, renewAtMs }
}

/** @throws ExportError `config` when a secret cannot be sent in a header */
export function headerText(variable: string, text: string): string {
  learnSecret(text)
  if (isHeaderText(text)) return text
  throw new ExportError({
    kind: 'config',
    what: 'The value holds a line break, another control character or a character outside ASCII',
    where: `variable ${variable}`,
    next: 'Set it to the token or key alone.',
  })
}
