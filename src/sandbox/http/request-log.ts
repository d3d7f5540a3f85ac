/** Both search endpoints count as 'search'. */
export type RequestKind = 'search' | 'reports' | 'tokens' | 'other'

/** One request as the sandbox saw it. Headers are left out: they carry credentials. */
export type LoggedRequest = {
  /** Counted from 1 over all requests. */
  readonly number: number
  readonly kind: RequestKind
  /** Counted from 1 within the kind. */
  readonly ordinal: number
  readonly method: string
  /** With the query string. */
  readonly path: string
  /** The parsed JSON body, or undefined without one. */
  readonly body: unknown
  /** Milliseconds since 1970 at which the head of the request arrived. */
  readonly at: number
  /** The status sent; 0 while there is none, or where the fault sends none. */
  status: number
  /** Items in the response to a search. */
  items: number
  /** The kind of the fault that struck, if one did. */
  fault: string | null
  /** The request broke the pace of its tier, whatever was answered. */
  tooFast: boolean
}

export type RequestLog = {
  readonly entries: readonly LoggedRequest[]
  add(seen: { kind: RequestKind; method: string; path: string; body: unknown; at: number }): LoggedRequest
}

export function requestLog(): RequestLog {
  const entries: LoggedRequest[] = []
  const ordinals = new Map<RequestKind, number>()
  return {
    entries,
    add(seen) {
      const ordinal = (ordinals.get(seen.kind) ?? 0) + 1
      ordinals.set(seen.kind, ordinal)
      const entry = {
        number: entries.length + 1,
        ordinal,
        ...seen,
        status: 0,
        items: 0,
        fault: null,
        tooFast: false,
      }
      entries.push(entry)
      return entry
    },
  }
}
