/** Where a request goes: a path under the base URL, as written, or an absolute URL. */
export const ADDRESS_PATTERN = /^(?:\/(?!\/)|https?:\/\/)[^\s\\]+$/
export const ADDRESS_EXPECTED =
  'a path that begins with / or an http or https URL, without user name, password, query or fragment'

export const URL_PATTERN = /^https?:\/\/[^\s\\]+$/
export const URL_EXPECTED =
  'an http or https URL such as https://api.example.com/firework, without user name, password, query or fragment'

/** Longer ones are refused by many servers; and it bounds the patterns below. */
const MAX_LENGTH = 2048

/** An absolute URL without trailing slashes, or null when it is none or carries more than host and path. */
export function parseUrl(text: string): string | null {
  if (text.length > MAX_LENGTH || !URL_PATTERN.test(text) || /[?#\p{Cc}]/u.test(text) || !URL.canParse(text))
    return null
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/]*@/.test(text)) return null
  return url.href.replace(/\/+$/, '')
}

/** A path as written, or an absolute URL. */
export function parseAddress(text: string): string | null {
  if (!text.startsWith('/')) return parseUrl(text)
  return parseUrl(`https://host.invalid${text}`) === null ? null : text
}

/** Whether a token may travel to this URL unencrypted: only on the machine itself. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** A host, with or without port and path, as people write it without its scheme. */
const BARE_HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}(?::\d{1,5})?(?:\/[a-z0-9._/-]*)?$/
const SCHEME = /^[a-z][a-z0-9+.-]{1,9}:\/\/[^\s@?#]+$/

/** Whether an address can be shown: it has no user, password, query or fragment, and looks like no token. */
export function mayBeShown(address: string): boolean {
  return address.length <= 200 && (SCHEME.test(address) || BARE_HOST.test(address))
}
