import type { Vector } from '../core/index.ts'
import { copied, FIRST_ELEMENTS, IndexList, MAX_KEPT_ELEMENTS, Validity } from './growing.ts'
import { TextList } from './text-list.ts'

/** Numbers, integers and microseconds alike, with nulls. */
export class NumberList {
  private values = new Float64Array(FIRST_ELEMENTS)
  private readonly validity = new Validity()

  add(value: number | null): void {
    const at = this.validity.length
    if (at === this.values.length) this.values = copied(this.values, new Float64Array(2 * at))
    this.values[at] = value ?? 0
    this.validity.add(value !== null)
  }

  get length(): number {
    return this.validity.length
  }

  vector(): Vector {
    const values = this.values.subarray(0, this.validity.length)
    return { kind: 'number', values, valid: this.validity.view() }
  }

  reset(): void {
    this.validity.reset()
    if (this.values.length > MAX_KEPT_ELEMENTS) this.values = new Float64Array(FIRST_ELEMENTS)
  }
}

export class BooleanList {
  private values = new Uint8Array(FIRST_ELEMENTS)
  private readonly validity = new Validity()

  add(value: boolean | null): void {
    const at = this.validity.length
    if (at === this.values.length) this.values = copied(this.values, new Uint8Array(2 * at))
    this.values[at] = value === true ? 1 : 0
    this.validity.add(value !== null)
  }

  vector(): Vector {
    const values = this.values.subarray(0, this.validity.length)
    return { kind: 'boolean', values, valid: this.validity.view() }
  }

  reset(): void {
    this.validity.reset()
    if (this.values.length > MAX_KEPT_ELEMENTS) this.values = new Uint8Array(FIRST_ELEMENTS)
  }
}

/** Lists of texts, with nulls among the lists. */
export class ListList {
  readonly items = new TextList()
  private readonly offsets = new IndexList()
  private readonly validity = new Validity()

  constructor() {
    this.offsets.add(0)
  }

  /** Ends a list: the items added since the last call are its own. */
  close(isThere: boolean): void {
    this.offsets.add(this.items.length)
    this.validity.add(isThere)
  }

  add(texts: readonly string[] | null): void {
    for (const text of texts ?? []) this.items.addText(text)
    this.close(texts !== null)
  }

  vector(): Vector {
    return {
      kind: 'list',
      offsets: this.offsets.view(),
      items: this.items.vector(),
      valid: this.validity.view(),
    }
  }

  reset(): void {
    this.items.reset()
    this.offsets.reset()
    this.offsets.add(0)
    this.validity.reset()
  }
}
