import { domainToASCII } from 'node:url'
import { isLoopback } from '../../core/index.ts'

const NO_DOMAIN_CHARACTER = /[^\p{L}\p{M}\p{N}_.-]/u
/** 255 bytes with the length byte and the root. */
const MAX_LENGTH = 253
const TOO_LONG = `more than ${MAX_LENGTH} characters`
/** Unicode composition shortens a text to a quarter at most. For many marks in a row it takes quadratic time. */
const MAX_RAW_LENGTH = 4 * MAX_LENGTH

export const DOMAIN_EXPECTED = `a domain name (letters, digits, -, _ and dots, at most ${MAX_LENGTH} characters)`

/** As the service knows it: lower case, punycode, no trailing dot; null: no domain, so a search would find nothing. */
export function parseDomain(text: string): string | null {
  return faultOf(text) === null ? domainToASCII(normalise(text)) : null
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
    // Of version 6; and what URL parsers read as one of version 4, also in short or hexadecimal form.
    [
      /^\[?[0-9a-f]*:[0-9a-f.]*:|(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i,
      'an IP address; only domains can be searched for',
    ],
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

/** Of a domain in ASCII. RFC 1035, section 2.3.4, bounds the lengths; RFC 952 and 1123 forbid hyphens there. */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'letters that no domain can have'],
  [/(?:^|\.)(?:\.|$)/, 'an empty label'],
  [/^[^.]*$/, 'a name without a dot; write the domain in full, such as acme.com'],
  [/^.{254}/, TOO_LONG],
  [/[^.]{64}/, 'more than 63 characters between two dots'],
  [/(?:^|\.)-|-(?:\.|$)/, 'a - at the beginning or end of a label'],
  [/\.[^.]$/, 'a single character after the last dot'],
]

function faultOf(text: string): string | null {
  if (text.length > MAX_RAW_LENGTH) return TOO_LONG
  const domain = normalise(text)
  const mistake = mistakeIn('domain', domain)
  if (mistake !== null) return mistake
  const unexpected = NO_DOMAIN_CHARACTER.exec(domain)
  if (unexpected !== null) return `the character ${JSON.stringify(unexpected[0])}`
  const ascii = domainToASCII(domain)
  return FAULTS.find(([pattern]) => pattern.test(ascii))?.[1] ?? null
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
