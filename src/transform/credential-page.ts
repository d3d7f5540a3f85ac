import {
  type DecodedPage,
  type DecodePlan,
  encodeFrame,
  type FrameRoom,
  type PageContext,
  type QuarantinedItem,
} from '../core/index.ts'
import type { ChainIds } from './chain-ids.ts'
import type { CredentialColumns } from './columns/index.ts'
import { PageRange } from './page-range.ts'
import {
  CREDENTIAL_FIELDS,
  fieldName,
  parseCredential,
  SOURCE_FIELDS,
  timestamp,
  UnknownFields,
  unknownNames,
} from './schema/index.ts'
import { ignoredFilter, invalidItem, issuePath, type Quarantine, refusedId } from './set-aside/index.ts'

/** One page of credentials under construction: what both decode paths share. */
export class CredentialPage {
  readonly range: PageRange
  readonly unknown = new UnknownFields()
  private readonly quarantined: QuarantinedItem[] = []

  /** @param columns emptied first, as are `ids`; they may serve one page at a time */
  constructor(
    private readonly plan: DecodePlan,
    readonly columns: CredentialColumns,
    private readonly ids: ChainIds,
    private readonly quarantine: Quarantine,
    private readonly context: PageContext,
    private readonly room?: FrameRoom,
  ) {
    columns.reset()
    ids.begin(context.recent)
    this.range = new PageRange(plan.order, context, ids)
  }

  /**
   * Takes one parsed item: a row, a quarantine entry, or nothing where it belongs elsewhere.
   * @param exact the same with all digits of its numbers
   * @throws ExportError 'data' when it was not asked for, or is invalid under `on_invalid: fail`
   */
  add(item: unknown, index: number, exact: () => unknown): void {
    const result = parseCredential(item, exact)
    if (!result.success) {
      if (this.isLeftToTheNextWindow(item)) return
      const { issues } = result.error
      const id = refusedId(exact())
      if (id !== null && !this.ids.isNewRefusal(id)) return
      if (this.plan.onInvalid === 'fail') throw invalidItem(index, issues.map(issuePath), this.context)
      this.quarantined.push(this.quarantine(exact(), issues, index, this.context))
      return
    }
    const credential = result.data
    const verdict = this.range.admit(credential.id, credential.imported_at)
    if (verdict === 'outside') throw ignoredFilter(index, this.context)
    if (verdict !== 'keep') return
    this.columns.add(credential)
    this.countUnknown(item as object)
  }

  finish(items: number, next: string | null): DecodedPage {
    const { rows } = this.columns
    const { partition, queryValue } = this.context
    return {
      next,
      frame: rows === 0 ? null : encodeFrame(this.columns.frame(partition.query.type, queryValue), this.room),
      rows,
      items,
      repeated: this.ids.repeated,
      ids: this.ids.page(),
      importedAt: this.range.importedAt,
      span: this.range.span,
      quarantined: this.quarantined,
      unknownFields: this.unknown.record(),
    }
  }

  /** The service's filter is inclusive at both ends; an invalid item at the very end is the next window's to refuse. */
  private isLeftToTheNextWindow(item: unknown): boolean {
    if (typeof item !== 'object' || item === null || !('imported_at' in item)) return false
    const { data: at } = timestamp.safeParse(item.imported_at)
    return at !== undefined && this.range.isEnd(at)
  }

  private countUnknown(item: { source?: object | null }): void {
    for (const name of unknownNames(item, CREDENTIAL_FIELDS)) this.unknown.count(fieldName('', name))
    if (!item.source) return
    for (const name of unknownNames(item.source, SOURCE_FIELDS))
      this.unknown.count(fieldName('source.', name))
  }
}
