import { REDACTED } from '../mask/index.ts'
import { isKnownField, UNNAMED_FIELDS } from '../schema.ts'
import type { OwnSecret } from './own-secret.ts'
import type { RowSecrets } from './row-secrets.ts'

/** These are masked by their own rules, or are numbers and times. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['id', 'hash', 'imported_at', 'breached_at', 'leaked_at'])

/**
 * What quarantine shows of an item, without the secret that the item has in `hash`, in whatever form: it may be the very
 * field that breaks the schema.
 */
export function withoutOwnSecrets(
  shown: unknown,
  item: unknown,
  secrets: RowSecrets,
  queryValue: string,
): unknown {
  const hash = typeof item === 'object' && item !== null && 'hash' in item ? item.hash : null
  let result = shown
  for (const secret of scalars(hash)) {
    const own = secrets.secret(secret)
    if (own !== null) result = new Hidden(own, secrets, queryValue).object(result, true)
  }
  return result
}

/** The first strings and numbers in a value, which may be nested deeper than calls can be. */
function scalars(value: unknown): readonly string[] {
  const found: string[] = []
  const open = [value]
  while (open.length > 0 && found.length < MAX_SECRETS) {
    const next = open.pop()
    if (typeof next === 'object' && next !== null) open.push(...Object.values(next).slice(0, MAX_SECRETS))
    else if (next !== null && typeof next !== 'boolean') found.push(String(next))
  }
  return found
}

const MAX_SECRETS = 100

class Hidden {
  readonly #own: OwnSecret
  readonly #secrets: RowSecrets
  readonly #queryValue: string

  constructor(own: OwnSecret, secrets: RowSecrets, queryValue: string) {
    this.#own = own
    this.#secrets = secrets
    this.#queryValue = queryValue
  }

  object(value: unknown, isItem: boolean): unknown {
    if (typeof value !== 'object' || value === null) return value
    const fields = Object.entries(value)
    return Object.fromEntries(
      fields.map(([name, field]) => {
        const shownName = !isKnownField(name) && this.#own.isIn(name) ? UNNAMED_FIELDS : name
        return [shownName, AS_THEY_ARE.has(name) ? field : this.#field(name, field, isItem ? value : null)]
      }),
    )
  }

  #field(name: string, value: unknown, item: { readonly identity_name?: unknown } | null): unknown {
    const own = this.#own
    if (item !== null && typeof value === 'string') {
      if (name === 'identity_name') return this.#secrets.identityWithout(own, value)
      if (name === 'domain' && own.isKnownBy(String(item.identity_name), this.#queryValue)) return value
    }
    return this.#value(value)
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return this.#own.maskedIn(value)
    if (typeof value === 'number') return this.#own.isNumber(String(value)) ? REDACTED : value
    return Array.isArray(value) ? value.map((each) => this.#value(each)) : this.object(value, false)
  }
}
