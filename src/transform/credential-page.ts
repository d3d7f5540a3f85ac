import type { Int64 } from '../core/index.ts'
import {
  type DecodedPage,
  type DecodeSettings,
  encodeRecordBatch,
  type PageContext,
  type RejectedItem,
} from '../rows/index.ts'
import type { ChainIds } from './chain-ids.ts'
import type { CredentialColumns } from './columns/credential-columns.ts'
import type { ExtraReader } from './extra/extra-reader.ts'
import type { Suppression } from './mask/suppression.ts'
import { ignoredFilter, PageRange } from './page-range.ts'
import { type Quarantine, rejectedId, rejectedTime } from './quarantine.ts'
import { type RowTexts, repeats } from './row-texts.ts'
import { CREDENTIAL_FIELDS, credentialSchema, SOURCE_FIELDS, UnknownFields, unknownNames } from './schema.ts'

/** What all pages of a decoder share. `columns` and `ids` serve one page at a time. */
export type PageTools = {
  readonly columns: CredentialColumns
  readonly ids: ChainIds
  readonly quarantine: Quarantine
  readonly extras: ExtraReader | null
  readonly texts: RowTexts
  /** null: nobody is forgotten. */
  readonly suppression: Suppression | null
}

export class CredentialPage {
  readonly range: PageRange
  readonly unknown = new UnknownFields()
  readonly columns: CredentialColumns
  readonly suppression: Suppression | null
  readonly #ids: ChainIds
  readonly #quarantine: Quarantine
  readonly #extras: ExtraReader | null
  readonly #texts: RowTexts
  readonly #quarantined: RejectedItem[] = []
  readonly #forgotten: (number | null)[] = []

  readonly #context: PageContext

  /** Empties columns and ids. */
  constructor(
    settings: Pick<DecodeSettings, 'order'>,
    { columns, suppression, ids, quarantine, extras, texts }: PageTools,
    context: PageContext,
  ) {
    this.#context = context
    this.columns = columns
    this.suppression = suppression
    this.#ids = ids
    this.#quarantine = quarantine
    this.#extras = extras
    this.#texts = texts
    columns.reset()
    ids.begin(context)
    this.range = new PageRange(settings.order, context, ids)
  }

  /**
   * Adds one item as a row or to quarantine, or ignores it. It is parsed with all digits; its JSON begins at `start`.
   * @throws ExportError 'data' when it was not requested
   */
  add(item: unknown, index: number, body: Buffer, start: number): void {
    const result = credentialSchema.safeParse(item)
    const { hash, identity_name } = result.data ?? {}
    const hidden = this.#texts.hidden([hash], identity_name)
    const extras = this.#extras?.read(item, body, start, hidden) ?? null
    if (!result.success || (extras !== null && extras.issues.length > 0)) {
      const at = rejectedTime(item)
      // A request may cover more than this chain's windows: an invalid item there is rejected by the other chain.
      if (at !== null && this.range.isLeftToOthers(at)) return
      const id = rejectedId(item)
      if (id !== null && !this.#ids.isNewRejection(id)) return
      if (this.#isForgotten(item)) {
        this.forget(at)
        return
      }
      const issues = [...(result.error?.issues ?? []), ...(extras?.issues ?? [])]
      this.#quarantined.push(this.#quarantine(item, issues, index))
      return
    }
    const credential = this.#texts.shown(result.data)
    const verdict = this.range.admit(credential.id, credential.imported_at)
    if (verdict === 'outside') throw ignoredFilter(index, this.#context)
    if (verdict !== 'keep') return
    // Only now: its id is remembered, so that a repetition is recognized.
    if (this.suppression?.has(credential.identity_name) === true) {
      this.forget(credential.imported_at)
      return
    }
    this.columns.add(credential, extras?.values ?? [])
    this.unknown.countAll(extras?.unknown ?? unknownOf(item as object), (name) => repeats(name, hidden))
  }

  forget(at: Int64 | null): void {
    this.#forgotten.push(at === null ? null : Number(at))
  }

  finish(items: number, next: string | null): DecodedPage {
    const { rows } = this.columns
    const { query, queryValue } = this.#context
    return {
      next,
      recordBatch: rows === 0 ? null : encodeRecordBatch(this.columns.recordBatch(query.type, queryValue)),
      rows,
      items,
      repeated: this.#ids.repeated,
      forgotten: this.#forgotten,
      met: this.#ids.met,
      ids: this.#ids.page(),
      times: this.columns.importedAt.copy(),
      span: this.range.span,
      quarantined: this.#quarantined,
      unknownFields: this.unknown.record(),
    }
  }

  #isForgotten(item: unknown): boolean {
    if (this.suppression === null || typeof item !== 'object' || item === null) return false
    const { identity_name: name, hash } = item as { identity_name?: unknown; hash?: unknown }
    if (typeof name !== 'string') return false
    return this.suppression.has(this.#texts.identity(name, typeof hash === 'string' ? hash : null))
  }
}

function unknownOf(item: { source?: object | null }): readonly string[] {
  const ofSource = item.source ? unknownNames(item.source, SOURCE_FIELDS, 'source.') : []
  return [...unknownNames(item, CREDENTIAL_FIELDS), ...ofSource]
}
