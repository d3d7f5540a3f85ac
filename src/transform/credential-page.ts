import {
  type BatchAllocator,
  type DecodedPage,
  type DecodePlan,
  encodeRecordBatch,
  type PageContext,
  type RefusedItem,
} from '../core/index.ts'
import type { ChainIds } from './chain-ids.ts'
import type { CredentialColumns } from './columns/index.ts'
import type { ExtraReader } from './extra/index.ts'
import { PageRange } from './page-range.ts'
import {
  CREDENTIAL_FIELDS,
  fieldName,
  parseCredential,
  SOURCE_FIELDS,
  UnknownFields,
  unknownNames,
} from './schema/index.ts'
import { ignoredFilter, type Quarantine, refusedId, refusedTime } from './set-aside/index.ts'

/** An item as the service sent it. */
export type RawItem = {
  /** Parsed with all digits of its numbers. */
  readonly exact: () => unknown
  readonly body: Buffer
  /** Where it begins in the body. */
  readonly start: () => number
}

/** One page of credentials under construction: what both decode paths share. */
export class CredentialPage {
  readonly range: PageRange
  readonly unknown = new UnknownFields()
  private readonly quarantined: RefusedItem[] = []

  /** @param columns emptied first, as are `ids`; they may serve one page at a time */
  constructor(
    plan: DecodePlan,
    readonly columns: CredentialColumns,
    private readonly ids: ChainIds,
    private readonly quarantine: Quarantine,
    private readonly extras: ExtraReader | null,
    private readonly context: PageContext,
    private readonly room?: BatchAllocator,
  ) {
    columns.reset()
    ids.begin(context.recent)
    this.range = new PageRange(plan.order, context, ids)
  }

  /**
   * Takes one parsed item: a row, a quarantine entry, or nothing where it belongs elsewhere.
   * @throws ExportError 'data' when it was not asked for
   */
  add(item: unknown, index: number, raw: RawItem): void {
    const { exact } = raw
    const result = parseCredential(item, exact)
    this.extras?.item(raw.body, raw.start())
    const broken = this.extras?.issues ?? []
    if (!result.success || broken.length > 0) {
      if (this.isLeftToOthers(item)) return
      const id = refusedId(exact())
      if (id !== null && !this.ids.isNewRefusal(id)) return
      this.quarantined.push(this.quarantine(exact(), [...(result.error?.issues ?? []), ...broken], index))
      return
    }
    const credential = result.data
    const verdict = this.range.admit(credential.id, credential.imported_at)
    if (verdict === 'outside') throw ignoredFilter(index, this.context)
    if (verdict !== 'keep') return
    this.extras?.hide(
      this.extras.hidesSecret ? (credential.hash ?? null) : null,
      this.extras.hidesIdentity ? credential.identity_name : null,
    )
    this.columns.add(credential, this.extras?.values ?? [])
    this.countUnknown(item as object)
  }

  finish(items: number, next: string | null): DecodedPage {
    const { rows } = this.columns
    const { query, queryValue } = this.context
    return {
      next,
      recordBatch:
        rows === 0 ? null : encodeRecordBatch(this.columns.recordBatch(query.type, queryValue), this.room),
      rows,
      items,
      repeated: this.ids.repeated,
      ids: this.ids.page(),
      times: this.columns.importedAt.copy(),
      span: this.range.span,
      quarantined: this.quarantined,
      unknownFields: this.unknown.record(),
    }
  }

  /** What is asked for may be more than what is this chain's: an invalid item there is another's to refuse. */
  private isLeftToOthers(item: unknown): boolean {
    const at = refusedTime(item)
    return at !== null && this.range.isLeftToOthers(at)
  }

  private countUnknown(item: { source?: object | null }): void {
    const { unknown, extras } = this
    const known = extras?.itemFields ?? CREDENTIAL_FIELDS
    for (const name of unknownNames(item, known)) unknown.count(fieldName('', name))
    if (item.source) {
      const ofSource = extras?.sourceFields ?? SOURCE_FIELDS
      for (const name of unknownNames(item.source, ofSource)) unknown.count(fieldName('source.', name))
    }
    for (const name of extras?.unknown(extras.unknownOfSource) ?? []) unknown.count(name)
  }
}
