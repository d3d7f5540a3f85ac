import type { Int64, Vector } from '../../core/index.ts'
import { copied, FIRST_ELEMENTS, IndexList, MAX_KEPT_ELEMENTS, Validity } from './growing.ts'
import { TextList } from './text-list.ts'

/** Whole numbers, identifiers and microseconds alike, with nulls. */
export class NumberList {
  private values = new Float64Array(FIRST_ELEMENTS)
  /** Takes the values over, all of them, once there is one that a double does not hold. */
  private large: BigInt64Array<ArrayBuffer> | null = null
  private readonly validity = new Validity()

  add(value: Int64 | null): void {
    const at = this.validity.length
    if (this.large !== null || typeof value === 'bigint') this.addLarge(value ?? 0)
    else {
      if (at === this.values.length) this.values = copied(this.values, new Float64Array(2 * at))
      this.values[at] = value ?? 0
    }
    this.validity.add(value !== null)
  }

  get length(): number {
    return this.validity.length
  }

  vector(): Vector {
    const { length } = this.validity
    const valid = this.validity.view()
    return this.large === null
      ? { kind: 'number', values: this.values.subarray(0, length), valid }
      : { kind: 'int64', values: this.large.subarray(0, length), valid }
  }

  /** The values, nulls being 0, in memory of their own. */
  copy(): Float64Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> {
    const { length } = this.validity
    return this.large === null ? this.values.slice(0, length) : this.large.slice(0, length)
  }

  reset(): void {
    this.validity.reset()
    this.large = null
    if (this.values.length > MAX_KEPT_ELEMENTS) this.values = new Float64Array(FIRST_ELEMENTS)
  }

  private addLarge(value: Int64): void {
    const at = this.validity.length
    if (this.large === null) {
      this.large = new BigInt64Array(this.values.length + 1)
      for (let i = 0; i < at; i++) this.large[i] = BigInt(this.values[i]!)
    } else if (at === this.large.length) this.large = copied(this.large, new BigInt64Array(2 * at))
    this.large[at] = BigInt(value)
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
