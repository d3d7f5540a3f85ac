import type { Column, Group } from '../../rows/index.ts'
import type { Source } from '../schema.ts'
import { BooleanList, IndexList, NumberList } from './lists.ts'
import { addGroup } from './text-columns.ts'
import { TextList } from './text-list.ts'

/** Sources under one `source_id` that are compared before a repetition is let pass. */
const MAX_COMPARED = 8
const NONE = -1

/** A page repeats a few hundred sources thousands of times, so all their columns share one index per row. */
export class SourceTable {
  readonly #indices = new IndexList()
  /** The first entry of each `source_id`. */
  #firsts = new Map<string, number>()
  /** The source of each entry, and the next entry under its `source_id` that is compared. */
  readonly #sources: (Source | null)[] = []
  readonly #nexts: number[] = []
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

  entry(sourceId: string, source: Source | null): number {
    let compared = 0
    let last = NONE
    for (let at = this.#firsts.get(sourceId) ?? NONE; at !== NONE; at = this.#nexts[at]!) {
      if (areEqual(this.#sources[at]!, source)) return at
      last = at
      compared++
    }
    const entry = this.#append(sourceId, source)
    if (last === NONE) this.#firsts.set(sourceId, entry)
    else if (compared < MAX_COMPARED) this.#nexts[last] = entry
    return entry
  }

  addRow(entry: number): void {
    this.#indices.add(entry)
  }

  addGroup(groups: Group[]): number {
    return addGroup(groups, this.#ids.length, this.#indices.view())
  }

  /** @throws Error when there is no such column: the settings name one that no credential has */
  column(name: string, group: number): Column {
    const list = this.#columns.get(name)
    if (list === undefined) throw new Error(`no such column: ${name}`)
    return { name, group, values: list.vector() }
  }

  reset(): void {
    this.#indices.reset()
    // Once V8 has moved a cleared map's table to the old generation, all later ones follow. A new map does not.
    this.#firsts = new Map()
    this.#sources.length = 0
    this.#nexts.length = 0
    for (const list of this.#columns.values()) list.reset()
  }

  #append(sourceId: string, source: Source | null): number {
    this.#sources.push(source)
    this.#nexts.push(NONE)
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
