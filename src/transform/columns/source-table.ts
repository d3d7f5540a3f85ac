import type { Column, Group } from '../../core/index.ts'
import type { Source } from '../schema.ts'
import { BooleanList, IndexList, NumberList } from './lists.ts'
import { addGroup } from './text-columns.ts'
import { TextList } from './text-list.ts'

/** Sources under one `source_id` that are compared before a repetition is let pass. */
const MAX_COMPARED = 8

/**
 * The distinct pairs of `source_id` and `source` of one page, and the pair of each row. A page repeats a
 * few hundred sources thousands of times, so all their columns share one index per row.
 */
export class SourceTable {
  readonly #indices = new IndexList()
  readonly #known = new Map<string, { source: Source | null; entry: number }[]>()
  readonly #ids = new TextList()
  readonly #names = new TextList()
  readonly #descriptionsEn = new TextList()
  readonly #descriptionsFr = new TextList()
  readonly #alerts = new BooleanList()
  readonly #breached = new NumberList()
  readonly #leaked = new NumberList()

  readonly #columns = new Map<string, TextList | BooleanList | NumberList>([
    ['source_id', this.#ids],
    ['source_name', this.#names],
    ['source_description_en', this.#descriptionsEn],
    ['source_description_fr', this.#descriptionsFr],
    ['source_is_alert_enabled', this.#alerts],
    ['source_breached_at', this.#breached],
    ['source_leaked_at', this.#leaked],
  ])

  /** The entry of a pair, made where it is new. */
  entry(sourceId: string, source: Source | null): number {
    const candidates = this.#known.get(sourceId) ?? []
    for (const candidate of candidates) if (areEqual(candidate.source, source)) return candidate.entry
    const entry = this.#append(sourceId, source)
    if (candidates.length === 0) this.#known.set(sourceId, candidates)
    if (candidates.length < MAX_COMPARED) candidates.push({ source, entry })
    return entry
  }

  addRow(entry: number): void {
    this.#indices.add(entry)
  }

  /** Adds the group that all source columns share. */
  addGroup(groups: Group[]): number {
    return addGroup(groups, this.#ids.length, this.#indices.view())
  }

  /** @throws Error when there is no such column: the plan names one that no credential has */
  column(name: string, group: number): Column {
    const list = this.#columns.get(name)
    if (list === undefined) throw new Error(`no such column: ${name}`)
    return { name, group, values: list.vector() }
  }

  reset(): void {
    this.#indices.reset()
    this.#known.clear()
    for (const list of this.#columns.values()) list.reset()
  }

  #append(sourceId: string, source: Source | null): number {
    this.#ids.addText(sourceId)
    addOptional(this.#names, source?.name)
    addOptional(this.#descriptionsEn, source?.description_en)
    addOptional(this.#descriptionsFr, source?.description_fr)
    this.#alerts.add(source?.is_alert_enabled ?? null)
    this.#breached.add(source?.breached_at ?? null)
    this.#leaked.add(source?.leaked_at ?? null)
    return this.#ids.length - 1
  }
}

function addOptional(list: TextList, text: string | null | undefined): void {
  if (text === null || text === undefined) list.addNull()
  else list.addText(text)
}

function areEqual(a: Source | null, b: Source | null): boolean {
  if (a === null || b === null) return a === b
  return (
    a.name === b.name &&
    a.description_en === b.description_en &&
    a.description_fr === b.description_fr &&
    a.is_alert_enabled === b.is_alert_enabled &&
    a.breached_at === b.breached_at &&
    a.leaked_at === b.leaked_at
  )
}
