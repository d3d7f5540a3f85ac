import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { isLoopback } from '../../core/index.ts'

const DOMAIN = /^[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)*$/u
const NO_DOMAIN_CHARACTER = /[^\p{L}\p{M}\p{N}_.-]/u
/** URL parsers read a host that ends like this as an IPv4 address, also in short or hexadecimal form. */
const NUMBER_AT_END = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i
/** RFC 1035, section 2.3.4: 255 bytes with the length byte and the root, and 63 for a label. */
const MAX_LENGTH = 253
const MAX_LABEL = 63
/** Unicode composition shortens a text to a quarter at most. For many marks in a row it takes quadratic time. */
const MAX_RAW_LENGTH = 4 * MAX_LENGTH

export const DOMAIN_EXPECTED = `a domain name (letters, digits, -, _ and dots, at most ${MAX_LENGTH} characters)`

/** As the service knows it: lower case, punycode, no trailing dot; null: no domain, so a search would find nothing. */
export function parseDomain(text: string): string | null {
  return faultOf(text) === null ? asciiOf(text) : null
}

/** Why a text is no domain. Does not quote the text. */
export function domainFault(text: string): string {
  return faultOf(text) ?? 'no domain'
}

/** What a value is by mistake, and what to write instead. A search for it would cost and match nothing. */
const MISTAKES = {
  domain: [
    [/^[a-z][a-z0-9+.-]*:\/\/|^\/\//i, 'a URL'],
    [/@/, 'an e-mail address'],
    [/^\*\./, 'a wildcard'],
  ],
  email: [
    [/[<>]/, 'an address in angle brackets; write the address alone'],
    [/^mailto:/i, 'a link; write the address alone'],
    [/[,;]\s*\S+@/, 'several addresses; write each as a query of its own'],
    [/^\*?@/, 'no address of one person; ask for a domain with a query of type: domain'],
  ],
  keyword: [
    [
      /@/,
      'an e-mail address; a keyword is what precedes the @; ask for the address with a query of type: email',
    ],
  ],
} as const satisfies Readonly<Record<string, readonly (readonly [RegExp, string])[]>>

/** The mistake that a value of a query is; null: it may match something. */
export function mistakeIn(kind: keyof typeof MISTAKES, text: string): string | null {
  return MISTAKES[kind].find(([pattern]) => pattern.test(text.trim()))?.[1] ?? null
}

function faultOf(text: string): string | null {
  if (text.length > MAX_RAW_LENGTH) return `${text.length} characters`
  const domain = normalise(text)
  const mistake = mistakeIn('domain', domain)
  if (mistake !== null) return mistake
  if (isAddress(domain.replace(/^\[|\]$/g, '')) || NUMBER_AT_END.test(domain)) {
    return 'an IP address; only domains can be searched for'
  }
  const unexpected = NO_DOMAIN_CHARACTER.exec(domain)
  if (unexpected !== null) return `the character ${JSON.stringify(unexpected[0])}`
  if (domain.length > MAX_LENGTH) return `${domain.length} characters`
  if (!DOMAIN.test(domain)) return 'an empty label'
  if (!domain.includes('.')) return 'a name without a dot; write the domain in full, such as acme.com'
  return faultOfLabels(asciiOf(text))
}

/** The first two tests are cheap, and `isIP` prepares long patterns when it is first called. */
function isAddress(text: string): boolean {
  return (text.includes(':') || NUMBER_AT_END.test(text)) && isIP(text) > 0
}

function faultOfLabels(ascii: string): string | null {
  if (ascii === '') return 'letters that no domain can have'
  if (ascii.length > MAX_LENGTH) return `${ascii.length} characters in punycode`
  const labels = ascii.split('.')
  const longest = Math.max(...labels.map((label) => label.length))
  if (longest > MAX_LABEL) return `${longest} characters between two dots; ${MAX_LABEL} are the most`
  // RFC 952 and 1123 forbid it. The service would search for it and find nothing.
  if (labels.some((label) => label.startsWith('-') || label.endsWith('-'))) {
    return 'a - at the beginning or end of a label'
  }
  return labels.at(-1)!.length < 2 ? 'a single character after the last dot' : null
}

function asciiOf(text: string): string {
  return domainToASCII(normalise(text))
}

function normalise(text: string): string {
  return text
    .trim()
    .replace(/[。．｡]/g, '.')
    .replace(/\.$/, '')
    .normalize('NFC')
    .toLowerCase()
}

/** A kind of address: what editors know of it, what it is in messages, and what parses it (null: none). */
type Kind = readonly [pattern: RegExp, expected: string, parse: (text: string) => string | null]

export const URL_EXPECTED =
  'an http or https URL such as https://api.example.com/firework, without user name, password, query or fragment'

/** An absolute URL without trailing slashes. Flags of a pattern have no place in a JSON Schema. */
export const URL_ALONE: Kind = [/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\]+$/, URL_EXPECTED, parseUrl]

/** A path below the base URL as written, or an absolute URL. */
export const ADDRESS: Kind = [
  /^(?:\/(?!\/)|[Hh][Tt][Tt][Pp][Ss]?:\/\/)[^\s\\]+$/,
  'a path that begins with / or an http or https URL, without user name, password, query or fragment',
  parseAddress,
]

/** The same with a placeholder. */
export const ID_ADDRESS: Kind = [
  /^(?:\/(?!\/)|[Hh][Tt][Tt][Pp][Ss]?:\/\/)[^\s\\]*\{id\}[^\s\\]*$/,
  `${ADDRESS[1]}, with {id} where the id belongs`,
  (text) =>
    text.includes('{id}') && parseAddress(text.replaceAll('{id}', '1')) !== null
      ? text.replace(/^[a-z]+:/i, (scheme) => scheme.toLowerCase())
      : null,
]

/** An address of any store without slashes at its end. */
export const LOCATION: Kind = [
  /^[a-z][a-z0-9+.-]*:\/\/[^\s?#\\]+$/,
  'an address such as s3://bucket/prefix or abfss://container@account.dfs.core.windows.net/prefix, without a password',
  (text) =>
    text.length > MAX_URL_LENGTH || /^[^/]*\/\/[^/]*:[^/]*@/.test(text) ? null : text.replace(/\/+$/, ''),
]

/** Many servers refuse longer ones. It also bounds the patterns. */
const MAX_URL_LENGTH = 2048

function parseUrl(text: string): string | null {
  if (
    text.length > MAX_URL_LENGTH ||
    !URL_ALONE[0].test(text) ||
    /[?#\p{Cc}]/u.test(text) ||
    !URL.canParse(text)
  )
    return null
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/]*@/.test(text)) return null
  return url.href.replace(/\/+$/, '')
}

function parseAddress(text: string): string | null {
  if (!text.startsWith('/')) return parseUrl(text)
  return parseUrl(`https://host.invalid${text}`) === null ? null : text
}

/** Whether a token may be sent to this URL unencrypted: only on this machine. */
export function staysHere(url: string): boolean {
  return isLoopback(new URL(url).hostname)
}

/** A host, with or without port and path, as people write it without its scheme. */
const BARE_HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}(?::\d{1,5})?(?:\/[a-z0-9._/-]*)?$/
const SCHEME = /^[a-z][a-z0-9+.-]{1,9}:\/\/[^\s@?#]+$/

/** Whether an address can be shown: it has no user, password, query or fragment, and looks like no token. */
export function mayBeShown(address: string): boolean {
  return address.length <= 200 && (SCHEME.test(address) || BARE_HOST.test(address))
}
