import type { OperationName } from './operations/index.ts'
import type { S3Request } from './request.ts'

/** A request that came in, and its outcome. */
export type Seen = {
  readonly operation: OperationName | 'Unknown'
  readonly bucket: string | null
  readonly key: string | null
  readonly query: S3Request['query']
  readonly headers: ReadonlyMap<string, string>
  /** Of the response; null while there is none, and for ever when the connection broke before. */
  status: number | null
  /** The code of an error response. */
  code: string | null
}

/** All given members have to match; with none, every request matches. */
export type Matcher = {
  readonly operation?: OperationName | readonly OperationName[]
  readonly key?: string | RegExp
  readonly where?: (request: Seen) => boolean
}

export type Trouble =
  /** Nothing is done, and this error is returned; with status 200 it is in a response that began as a success. */
  | { readonly code: string; readonly status?: number }
  /**
   * - `reset-before`: the connection breaks before anything is done
   * `reset-after`: the request is carried out, and its response lost
   * `cut-response`: the connection breaks in the middle of the response body
   */
  | { readonly connection: 'reset-before' | 'reset-after' | 'cut-response' }

export type Often = {
  /** How many of the matching requests it applies to: 1 by default. */
  readonly times?: number
  /** How many matching requests it lets pass before. */
  readonly skip?: number
}

export type Hook = (request: Seen) => Promise<void> | void

type Cue<T> = { readonly matcher: Matcher; readonly act: T; skip: number; times: number }

/** Faults for requests to come. If several cues match a request, the earliest applies. */
export class Cues {
  #troubles: Cue<Trouble>[] = []
  #before: Cue<Hook>[] = []

  fail(matcher: Matcher, trouble: Trouble & Often): void {
    this.#troubles.push(cue(matcher, trouble, trouble))
  }

  /**
   * Calls a hook once a request has come in completely and before any of it is processed, and waits for it: as if the
   * network had delayed the request.
   */
  before(matcher: Matcher, hook: Hook, often: Often = {}): void {
    this.#before.push(cue(matcher, hook, often))
  }

  clear(): void {
    this.#troubles = []
    this.#before = []
  }

  troubleFor(request: Seen): Trouble | null {
    return take(this.#troubles, request)
  }

  async pauseBefore(request: Seen): Promise<void> {
    await take(this.#before, request)?.(request)
  }
}

export function fits(request: Seen, { operation, key, where }: Matcher): boolean {
  if (operation !== undefined && ![operation].flat().some((each) => each === request.operation)) return false
  if (typeof key === 'string' && key !== request.key) return false
  if (key instanceof RegExp && !key.test(request.key ?? '')) return false
  return where?.(request) ?? true
}

function cue<T>(matcher: Matcher, act: T, { times = 1, skip = 0 }: Often): Cue<T> {
  return { matcher, act, skip, times }
}

function take<T>(cues: Cue<T>[], request: Seen): T | null {
  for (const each of cues) {
    if (each.times <= 0 || !fits(request, each.matcher)) continue
    if (each.skip > 0) {
      each.skip--
      continue
    }
    each.times--
    return each.act
  }
  return null
}
