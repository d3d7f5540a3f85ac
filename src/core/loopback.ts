/**
 * Whether a host name of a URL is this machine. Names below `localhost` count only where nothing secret depends on it:
 * not every resolver keeps them on the machine (RFC 6761, 6.3).
 */
export function isLoopback(hostname: string, { subdomains = false } = {}): boolean {
  return (
    /^(?:localhost|\[?::1\]?|127\.\d+\.\d+\.\d+)$/.test(hostname) ||
    (subdomains && hostname.endsWith('.localhost'))
  )
}
