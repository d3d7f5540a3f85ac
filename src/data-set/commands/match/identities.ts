import { ExportError, IDENTITY_POLICIES, locationOf, type Pipeline, rulesOf } from '../../../core/index.ts'
import { IGNORABLE, withoutEnd } from '../../../transform/index.ts'

export type Identities = {
  /** As they are spelled, without what stands around them. */
  readonly found: readonly string[]
  /** How many `@` are in no identity, or 1 for a text without any. */
  readonly unread: number
}

const NOTHING: Identities = { found: [], unread: 0 }

/** Directories join addresses, with kinds before them: `SMTP:a@b.com;x500:/o=…`, `Ada <a@b.com>`, `["a@b.com"]`. */
export function addressesIn(cell: string): Identities {
  if (!AT.test(cell)) return cell.trim() === '' ? NOTHING : { found: [], unread: 1 }
  const found: string[] = []
  let unread = 0
  const text = cell.replace(IGNORABLE, '').replace(WIDE_AT, '@').replace(JOINED, ' ')
  for (const [token] of text.matchAll(TOKENS)) {
    const marks = token.split('@').length - 1
    if (marks === 0) continue
    const bare = withoutEnd(token.replace(KINDS, '').replace(LEADING, ''), TRAILING)
    if (marks > 1 || CUT_OFF.test(token) || !ADDRESS.test(bare)) unread += marks
    else found.push(...new Set([bare.replace(GUEST, '$1@$2'), bare]))
  }
  // A list that is cut off lacks some.
  return { found, unread: Math.max(unread, CUT_OFF.test(cell) ? 1 : 0) }
}

/** The identities of a line that has nothing else: addresses, or a name without `@` as it stands. */
export function identitiesIn(line: string): Identities {
  const name = line.trim()
  return name === '' || AT.test(name) || NO_NAME.test(name) ? addressesIn(line) : { found: [name], unread: 0 }
}

export function digestsIn(cell: string): Identities {
  const words = cell.split(/[\s;,|]+/).filter((word) => word !== '')
  const found = words.filter((word) => /^[0-9a-f]{64}$/i.test(word)).map((word) => word.toLowerCase())
  return { found, unread: words.length - found.length }
}

const AT = /[@\uff20\ufe6b]/
const WIDE_AT = /[\uff20\ufe6b]/g
const CUT_OFF = /\u2026|\.\.\./
/** What separates addresses. A quoted local part belongs to its address, an apostrophe to a name. */
const TOKENS = /(?:"[^"@\r\n]*"@)?[^\s;,|<>()[\]{}"\u201c\u201d\u201e\u2039\u203a\u00ab\u00bb]+/gu
/** A plus sign before a kind of address joins two. */
const JOINED = /\+(?=\p{L}[\p{L}\d-]*:)/gu
/** Kinds of address, such as `SMTP:` or `SIP:sip:`. */
const KINDS = /^[^\p{L}\p{N}]*(?:[\p{L}\p{N}][\p{L}\p{N}_.-]*[:\uff1a]+)+/u
const LEADING = /^[^\p{L}\p{N}_"]+/u
const TRAILING = /[^\p{L}\p{M}\p{N}@]/u
/** What mailboxes are named by; anything else may be a mark that stuck to an address. */
const ADDRESS =
  /^(?:"[^"]*"|[\p{L}\p{M}\p{N}._+'\u2019&~-]+(?:#EXT#)?)@[\p{L}\p{M}\p{N}\p{So}\p{Emoji_Modifier}._\u3002\uff0e\uff61\u00b7\u30fb\u05f3\u05f4\u0375-]+$/iu
/** A guest of a tenant of Entra ID: `ada_home.com#EXT#@tenant.onmicrosoft.com` is `ada@home.com`. */
const GUEST = /^(.+)_([^_@]+)#EXT#@.+$/i
/** Placeholders and what is cut off: `System.String[]`, `{SMTP:`, `<none>`. A path of X.500 begins with its kind. */
const NO_NAME = /[;,|<>()[\]{}"\u2039\u203a\u2026\0]|\.\.\.|^\p{L}[\p{L}\d.-]*:/u

/** @param next what to do @throws ExportError `config` when the data set holds no identities */
export function requireIdentities(pipeline: Pipeline, next: string): void {
  const { identity, columns } = pipeline.transform
  const isThere = rulesOf(pipeline.extract.resource).holdsPeople && columns.includes('identity_name')
  const { dropsColumn } = IDENTITY_POLICIES[identity]
  if (isThere && !dropsColumn) return
  const where = locationOf(pipeline, dropsColumn ? 'transform.identity' : 'transform.columns')
  const what = 'The data set holds no identities, so nobody can be found in it'
  throw new ExportError({ kind: 'config', what, where, next })
}
