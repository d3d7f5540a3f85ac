import { IDENTITY_POLICIES, SECRET_POLICIES } from '../core/index.ts'
import type { DecodeSettings } from '../rows/index.ts'
import type { Credential } from './schema.ts'

/** Shorter secrets and identities occur in texts by chance. */
const MIN_REPEATED = 4

/** By the structure of a text: a search for the secret would tell it to everyone who knows the text from elsewhere. */
export class RowTexts {
  readonly #hidesSecret: boolean
  readonly #hidesIdentity: boolean

  constructor({ secret, identity }: Pick<DecodeSettings, 'secret' | 'identity'>) {
    this.#hidesSecret = SECRET_POLICIES[secret]?.shows !== true
    this.#hidesIdentity = IDENTITY_POLICIES[identity]?.shows !== true
  }

  /** A URL without what may be a person or a secret. */
  url(url: string): string {
    if (this.#hidesIdentity) return hostOnly(url)
    return this.#hidesSecret ? withoutUserAndQuery(url) : url
  }

  /** An identity that is a line of a list, `a@b.c:secret`, without the secret. */
  identity(identity: string, secret: string | null | undefined): string {
    return this.#hidesSecret && secret != null && secret !== '' && SEPARATOR.test(identity)
      ? withoutSecret(identity, secret)
      : identity
  }

  /** The credential with its identity and URLs as rows show them, before masking. */
  shown(credential: Credential): Credential {
    const { identity_name, urls, hash } = credential
    const identity = this.identity(identity_name, hash)
    if (identity === identity_name && urls == null) return credential
    return { ...credential, identity_name: identity, urls: urls?.map((url) => this.url(url)) ?? urls }
  }

  /** What no additional column, no quarantined text and no name of a field may contain. */
  hidden(secrets: readonly (string | null | undefined)[], identity: string | null | undefined): Hidden {
    const texts = [...(this.#hidesSecret ? secrets : []), this.#hidesIdentity ? identity : null]
    return texts.filter((text) => text != null && text.length >= MIN_REPEATED) as Hidden
  }
}

export type Hidden = readonly string[]

export function repeats(text: string, hidden: Hidden): boolean {
  return hidden.some((each) => text.includes(each))
}

/** User information: what stands between `://`, or the beginning, and the last `@` before the path. */
const PARTS = /^(?<scheme>[^/?#]*?:\/\/)?(?:[^/?#]*@)?(?<authority>[^/?#]*)(?<path>[^?#]*)/s

function withoutUserAndQuery(url: string): string {
  const { scheme = '', authority = '', path = '' } = PARTS.exec(url)!.groups!
  return scheme + authority + path
}

/** Without a port, since lines of lists are written as URLs, too: `https://host:user:secret`. */
function hostOnly(url: string): string {
  const { scheme = '', authority = '' } = PARTS.exec(url)!.groups!
  const [host = ''] = /^(?:\[[^\]]*\]|[^:]*)/.exec(authority)!
  return `${scheme}${host}/`
}

const SEPARATOR = /[:;|]/

/** The text without the secret where it is a part between separators or ends, and without one separator beside it. */
function withoutSecret(text: string, secret: string): string {
  if (SEPARATOR.test(secret)) {
    if (text.endsWith(secret) && SEPARATOR.test(text.at(-1 - secret.length) ?? ''))
      return text.slice(0, -1 - secret.length).trimEnd()
    const isFirst = text.startsWith(secret) && SEPARATOR.test(text[secret.length] ?? '')
    return isFirst ? text.slice(secret.length + 1).trimStart() : text
  }
  // Parts, and the separators between them.
  const pieces = text.split(/([:;|])/)
  const kept: string[] = []
  for (let i = 0; i < pieces.length; i += 2) {
    if (pieces[i] !== secret && pieces[i]!.trim() !== secret)
      kept.push(kept.length === 0 ? '' : pieces[i - 1]!, pieces[i]!)
  }
  return kept.length === pieces.length + 1 ? text : kept.join('').trim()
}
