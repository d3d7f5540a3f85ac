/** @param options `subdomains`: `*.localhost` too. Only without secrets: some resolvers send it out (RFC 6761, 6.3). */
export function isLoopback(hostname: string, { subdomains = false } = {}): boolean {
  return (
    /^(?:localhost|\[?::1\]?|127\.\d+\.\d+\.\d+)$/.test(hostname) ||
    (subdomains && hostname.endsWith('.localhost'))
  )
}

/** Milliseconds. Within the 250 of Node.js a slow host is never reached if one of its two addresses has no route. */
export const ADDRESS_ATTEMPT_MS = 2500
