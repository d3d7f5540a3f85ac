import type { Int64 } from '../core/index.ts'
import {
  type DecodedPage,
  type DecodeSettings,
  encodeRecordBatch,
  type PageContext,
  type RejectedItem,
} from '../rows/index.ts'
import { ChainIds } from './chain-ids.ts'
import { CredentialColumns } from './columns/credential-columns.ts'
import { ExtraReader } from './extra-reader.ts'
import { masksOf, suppression } from './mask/mask.ts'
import { ignoredFilter, PageRange } from './page-range.ts'
import { credentialQuarantine, type Quarantine, rejectedId, rejectedTime } from './quarantine.ts'
import { RowTexts, repeats } from './row-texts.ts'
import { CREDENTIAL_FIELDS, credentialSchema, SOURCE_FIELDS, UnknownFields, unknownNames } from './schema.ts'

/** Rows, rejected items and figures of one page at a time: columns and ids keep their memory for the next one. */
export class CredentialPage {
  readonly columns: CredentialColumns
  readonly extras: ExtraReader | null
  readonly texts: RowTexts
  /** Whether a person is forgotten; null: nobody is. */
  readonly isForgotten: ((identity: string) => boolean) | null
  range!: PageRange
  unknown!: UnknownFields
  readonly #order: DecodeSettings['order']
  readonly #ids = new ChainIds()
  readonly #quarantine: Quarantine
  #quarantined: RejectedItem[] = []
  #forgotten: (number | null)[] = []
  #context!: PageContext

  /** @throws ExportError 'config' when a policy needs a mask key and there is none */
  constructor(settings: DecodeSettings) {
    const masks = masksOf(settings)
    this.columns = new CredentialColumns(settings, masks)
    this.extras = settings.extras.length === 0 ? null : new ExtraReader(settings.extras)
    this.texts = new RowTexts(settings)
    this.isForgotten = suppression(settings.suppress)
    this.#order = settings.order
    this.#quarantine = credentialQuarantine(masks, settings.extras, this.texts)
  }

  begin(context: PageContext): void {
    this.#context = context
    this.columns.reset()
    this.#ids.begin(context)
    this.range = new PageRange(this.#order, context, this.#ids)
    this.unknown = new UnknownFields()
    this.#quarantined = []
    this.#forgotten = []
  }

  /**
   * Adds one item as a row or to quarantine, or ignores it. It is parsed with all digits; its JSON begins at `start`.
   * @throws ExportError 'data' when it was not requested
   */
  add(item: unknown, index: number, body: Buffer, start: number): void {
    const result = credentialSchema.safeParse(item)
    const { hash, identity_name } = result.data ?? {}
    const hidden = this.texts.hidden([hash], identity_name)
    const extras = this.extras?.read(item, body, start, hidden) ?? null
    if (!result.success || (extras !== null && extras.issues.length > 0)) {
      const at = rejectedTime(item)
      // A request may cover more than this chain's windows: an invalid item there is rejected by the other chain.
      if (at !== null && this.range.isLeftToOthers(at)) return
      const id = rejectedId(item)
      if (id !== null && !this.#ids.isNewRejection(id)) return
      if (this.#isOfForgotten(item)) {
        this.forget(at)
        return
      }
      const issues = [...(result.error?.issues ?? []), ...(extras?.issues ?? [])]
      this.#quarantined.push(this.#quarantine(item, issues, index))
      return
    }
    const credential = this.texts.shown(result.data)
    const verdict = this.range.admit(credential.id, credential.imported_at)
    if (verdict === 'outside') throw ignoredFilter(index, this.#context)
    if (verdict !== 'keep') return
    // Only now: its id is remembered, so that a repetition is recognized.
    if (this.isForgotten?.(credential.identity_name) === true) {
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

  #isOfForgotten(item: unknown): boolean {
    if (this.isForgotten === null || typeof item !== 'object' || item === null) return false
    const { identity_name: name, hash } = item as { identity_name?: unknown; hash?: unknown }
    if (typeof name !== 'string') return false
    return this.isForgotten(this.texts.identity(name, typeof hash === 'string' ? hash : null))
  }
}

function unknownOf(item: { source?: object | null }): readonly string[] {
  const ofSource = item.source ? unknownNames(item.source, SOURCE_FIELDS, 'source.') : []
  return [...unknownNames(item, CREDENTIAL_FIELDS), ...ofSource]
}
