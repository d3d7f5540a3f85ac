import { IGNORABLE } from '../../transform/index.ts'

/** What a text says of identities. */
export type Identities = {
  /** As they are spelled, without what stands around them. */
  readonly found: readonly string[]
  /** How many `@` are in no identity, or 1 for a text without any. */
  readonly unread: number
}

const NOTHING: Identities = { found: [], unread: 0 }

/**
 * The e-mail addresses of a cell. Directories join them by many separators, and put kinds before them:
 * `SMTP:a@b.com;smtp:c@b.com;x500:/o=…`, `{SIP:sip:a@b.com, …}`, `Ada <a@b.com>`, `["a@b.com"]`. Every `@` is in an
 * address, or unread.
 */
export function addressesIn(cell: string): Identities {
  if (!cell.includes('@')) return cell.trim() === '' ? NOTHING : { found: [], unread: 1 }
  const found: string[] = []
  let unread = 0
  for (const [token] of cell.replace(IGNORABLE, '').replace(JOINED, ' ').matchAll(TOKENS)) {
    const marks = token.split('@').length - 1
    if (marks === 0) continue
    const bare = token.replace(KINDS, '').replace(LEADING, '').replace(TRAILING, '')
    if (ADDRESS.test(bare)) found.push(bare.replace(GUEST, '$1@$2'))
    else unread += marks
  }
  return { found, unread }
}

/** The identities of a line that has nothing else: addresses, or a name without `@` as it stands. */
export function identitiesIn(line: string): Identities {
  const name = line.trim()
  return name === '' || name.includes('@') || NO_NAME.test(name)
    ? addressesIn(line)
    : { found: [name], unread: 0 }
}

/** The digests of a cell, which anything but hexadecimal digits may separate. */
export function digestsIn(cell: string): Identities {
  const words = cell.split(/[\s;,|]+/).filter((word) => word !== '')
  const found = words.filter((word) => /^[0-9a-f]{64}$/i.test(word)).map((word) => word.toLowerCase())
  return { found, unread: words.length - found.length }
}

/** What separates addresses. A quoted local part belongs to its address. */
const TOKENS = /(?:"[^"@\r\n]*"@)?[^\s;,|<>()[\]{}"\u201c\u201d\u2018\u2019\u2039\u203a\u00ab\u00bb]+/gu
/** A plus sign before a kind of address joins two. */
const JOINED = /\+(?=\p{L}[\p{L}\d-]*:)/gu
/** Kinds of address, such as `SMTP:` or `SIP:sip:`. */
const KINDS = /^['`]*(?:\p{L}[\p{L}\d.-]*:)+/u
const LEADING = /^['`]+/
const TRAILING = /[^\p{L}\p{M}\p{N}@]+$/u
const ADDRESS = /^(?:"[^"]*"|[^@"]+)@[\p{L}\p{M}\p{N}._\u3002\uff0e\uff61-]+$/u
/** A guest of a tenant of Entra ID: `ada_home.com#EXT#@tenant.onmicrosoft.com` is `ada@home.com`. */
const GUEST = /^(.+)_([^_@]+)#EXT#@.+$/i
/** Placeholders and what is cut off: `System.String[]`, `{SMTP:`, `<none>`. A path of X.500 begins with its kind. */
const NO_NAME = /[;,|<>()[\]{}"\u2039\u203a\u2026]|^\p{L}[\p{L}\d.-]*:/u
