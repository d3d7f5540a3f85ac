import type { Int64 } from '../../core/index.ts'
import type { Column, Group, Vector } from '../../rows/index.ts'

// A decoder keeps these from page to page, but gives back what one large page made grow. Views are good until a change.
export const FIRST_ELEMENTS = 1024
export const MAX_KEPT_ELEMENTS = 1 << 20

/** A column under construction. */
export type ColumnList = {
  /** As a view. A group that it needs is appended to `groups`. */
  column(name: string, groups: Group[]): Column
  reset(): void
}

export class IndexList {
  #values = new Uint32Array(FIRST_ELEMENTS)
  length = 0

  add(value: number): void {
    if (this.length === this.#values.length) this.#values = doubled(this.#values)
    this.#values[this.length++] = value
  }

  addAll(values: Uint32Array, count: number, base: number): void {
    while (this.length + count > this.#values.length) this.#values = doubled(this.#values)
    const { length } = this
    for (let i = 0; i < count; i++) this.#values[length + i] = base + values[i]!
    this.length += count
  }

  view(): Uint32Array {
    return this.#values.subarray(0, this.length)
  }

  reset(): void {
    this.length = 0
    if (this.#values.length > MAX_KEPT_ELEMENTS) this.#values = new Uint32Array(FIRST_ELEMENTS)
  }
}

export class Validity {
  #flags = new Uint8Array(FIRST_ELEMENTS)
  #nulls = 0
  length = 0

  add(isThere: boolean): void {
    if (this.length === this.#flags.length) this.#flags = doubled(this.#flags)
    this.#flags[this.length++] = isThere ? 1 : 0
    if (!isThere) this.#nulls++
  }

  /** Adds the first `count` of some flags, of which `nulls` are 0; any other means a value. */
  addAll(flags: Uint8Array, count: number, nulls: number): void {
    while (this.length + count > this.#flags.length) this.#flags = doubled(this.#flags)
    const { length } = this
    if (nulls === 0) this.#flags.fill(1, length, length + count)
    else for (let i = 0; i < count; i++) this.#flags[length + i] = flags[i] === 0 ? 0 : 1
    this.length += count
    this.#nulls += nulls
  }

  view(): Uint8Array | null {
    return this.#nulls === 0 ? null : this.#flags.subarray(0, this.length)
  }

  reset(): void {
    this.length = 0
    this.#nulls = 0
    if (this.#flags.length > MAX_KEPT_ELEMENTS) this.#flags = new Uint8Array(FIRST_ELEMENTS)
  }
}

export class NumberList implements ColumnList {
  #values = new Float64Array(FIRST_ELEMENTS)
  /** Takes the values over, all of them, once there is one that a double does not hold. */
  #large: BigInt64Array<ArrayBuffer> | null = null
  readonly #validity = new Validity()

  add(value: Int64 | null): void {
    const at = this.#validity.length
    if (this.#large !== null || typeof value === 'bigint') this.#addLarge(value ?? 0)
    else {
      if (at === this.#values.length) this.#values = doubled(this.#values)
      this.#values[at] = value ?? 0
    }
    this.#validity.add(value !== null)
  }

  get length(): number {
    return this.#validity.length
  }

  vector(): Vector {
    const { length } = this.#validity
    const valid = this.#validity.view()
    return this.#large === null
      ? { kind: 'number', values: this.#values.subarray(0, length), valid }
      : { kind: 'int64', values: this.#large.subarray(0, length), valid }
  }

  column(name: string): Column {
    return { name, group: null, values: this.vector() }
  }

  /** The values, nulls being 0, in memory of their own. */
  copy(): Float64Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> {
    const { length } = this.#validity
    return this.#large === null ? this.#values.slice(0, length) : this.#large.slice(0, length)
  }

  reset(): void {
    this.#validity.reset()
    this.#large = null
    if (this.#values.length > MAX_KEPT_ELEMENTS) this.#values = new Float64Array(FIRST_ELEMENTS)
  }

  #addLarge(value: Int64): void {
    const at = this.#validity.length
    if (this.#large === null) {
      this.#large = new BigInt64Array(this.#values.length + 1)
      for (let i = 0; i < at; i++) this.#large[i] = BigInt(this.#values[i]!)
    } else if (at === this.#large.length) this.#large = doubled(this.#large)
    this.#large[at] = BigInt(value)
  }
}

export class BooleanList implements ColumnList {
  #values = new Uint8Array(FIRST_ELEMENTS)
  readonly #validity = new Validity()

  add(value: boolean | null): void {
    const at = this.#validity.length
    if (at === this.#values.length) this.#values = doubled(this.#values)
    this.#values[at] = value === true ? 1 : 0
    this.#validity.add(value !== null)
  }

  vector(): Vector {
    const values = this.#values.subarray(0, this.#validity.length)
    return { kind: 'boolean', values, valid: this.#validity.view() }
  }

  column(name: string): Column {
    return { name, group: null, values: this.vector() }
  }

  reset(): void {
    this.#validity.reset()
    if (this.#values.length > MAX_KEPT_ELEMENTS) this.#values = new Uint8Array(FIRST_ELEMENTS)
  }
}

/** The same values, with room for as many more. */
export function doubled<T extends Uint8Array | Int32Array | Uint32Array | Float64Array | BigInt64Array>(
  values: T,
): T {
  const grown = new (values.constructor as new (length: number) => T)(2 * values.length)
  ;(grown as { set(values: T): void }).set(values)
  return grown
}
