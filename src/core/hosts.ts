/**
 * Whether a host name of a URL is this machine.
 * @param options `subdomains`: names below `localhost` count as well. Some resolvers send them to other machines (RFC
 *   6761, 6.3), so set it only where no secret is sent.
 */
export function isLoopback(hostname: string, { subdomains = false } = {}): boolean {
  return (
    /^(?:localhost|\[?::1\]?|127\.\d+\.\d+\.\d+)$/.test(hostname) ||
    (subdomains && hostname.endsWith('.localhost'))
  )
}

/**
 * How long one address of a host is tried before the next one, in milliseconds. Node.js waits 250 ms by itself: a host
 * with two addresses and a slower handshake, of which one has no route, is never reached then.
 */
export const ADDRESS_ATTEMPT_MS = 2500
