import type { DecodeSettings } from '../../rows/index.ts'
import type { Masks } from '../mask/index.ts'
import {
  AUTH_DOMAINS,
  CREDENTIAL_HASH,
  DOMAIN,
  EVENT_UID,
  HASH_TYPE,
  IDENTITY_NAME,
  KNOWN_PASSWORD_ID,
  URLS,
} from '../scan/item-fields.ts'
import type { Credential, Source } from '../schema.ts'
import { OwnSecret } from './own-secret.ts'

/** Names of fields are shown whatever the columns are. */
const NAMES = 31

const SEARCHED: readonly (readonly [column: string, field: number])[] = [
  ['domain', DOMAIN],
  ['identity_name', IDENTITY_NAME],
  ['hash_type', HASH_TYPE],
  ['known_password_id', KNOWN_PASSWORD_ID],
  ['auth_domains', AUTH_DOMAINS],
  ['urls', URLS],
  ['credential_hash', CREDENTIAL_HASH],
  ['event_uid', EVENT_UID],
]

/** Masks in the texts of a row the row's own secret. */
export class RowSecrets {
  /** Fields of an item that leave, for the item walker; 0 under `plaintext`, where nothing is masked. */
  readonly searched: number
  readonly #settings: Pick<DecodeSettings, 'secret' | 'identity'>
  readonly #masks: Masks

  constructor(settings: Pick<DecodeSettings, 'secret' | 'identity' | 'columns'>, masks: Masks) {
    this.#settings = settings
    this.#masks = masks
    const names = new Set(settings.columns.map(({ name }) => name))
    // A masked identity shows nothing.
    if (settings.identity !== 'keep') names.delete('identity_name')
    const fields = SEARCHED.filter(([column]) => names.has(column)).map(([, field]) => field)
    this.searched =
      settings.secret === 'plaintext' ? 0 : [NAMES, ...fields].reduce((bits, field) => bits | (1 << field), 0)
  }

  /** Of an item. Null: it is shown anyway, or there is nothing to look for. */
  secret(hash: string | null | undefined): OwnSecret | null {
    return this.#settings.secret === 'plaintext' ? null : OwnSecret.of(hash, this.#masks.secret)
  }

  /** Null: it is shown anyway. */
  identity(identity: string | null): OwnSecret | null {
    return this.#settings.identity === 'keep' ? null : OwnSecret.of(identity, this.#masks.identity)
  }

  /**
   * The credential with its secret masked in all texts but `hash`. A domain that the identity or the query repeats keeps
   * it: a mask would tell it to everyone who knows them.
   */
  masked(credential: Credential, own: OwnSecret, queryValue: string): Credential {
    const { identity_name: identity, domain, hash_type, known_password_id, source } = credential
    const { auth_domains, urls } = credential
    const { id: _, ...ofSource } = source ?? { id: '' }
    const texts = [
      identity,
      domain,
      hash_type,
      known_password_id,
      auth_domains,
      urls,
      Object.values(ofSource),
    ]
    if (!own.mayBeIn(texts.flat())) return credential
    const hidden = (text: string | null | undefined) => (text == null ? text : own.maskedIn(text))
    const hiddenAll = (list: readonly string[] | null | undefined) => list?.map((text) => own.maskedIn(text))
    const shown = {
      ...credential,
      identity_name: this.identityWithout(own, identity),
      domain: own.isKnownBy(identity, queryValue) ? domain : hidden(domain),
      hash_type: hidden(hash_type),
      known_password_id: hidden(known_password_id == null ? null : String(known_password_id)),
      auth_domains: hiddenAll(auth_domains),
      urls: hiddenAll(urls),
    }
    return { ...shown, source: source && maskedSource(source, own) }
  }

  identityWithout(own: OwnSecret, identity: string): string {
    return this.#settings.identity === 'keep' ? own.maskedInLine(identity) : identity
  }
}

function maskedSource(source: Source, own: OwnSecret): Source {
  const fields = Object.entries(source)
  return Object.fromEntries(
    fields.map(([name, value]) => [
      name,
      typeof value === 'string' && name !== 'id' ? own.maskedInSource(value) : value,
    ]),
  ) as Source
}
