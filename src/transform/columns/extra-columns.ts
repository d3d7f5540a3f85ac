import type { Column, ExtraField, Group, Int64, Vector } from '../../core/index.ts'
import { dictionaryColumn, plainColumn, type TextColumn } from './text-columns.ts'
import { BooleanList, ListList, NumberList } from './vector-lists.ts'

/** The value of an additional column; timestamps are microseconds. */
export type ExtraValue = string | boolean | Int64 | readonly string[] | null

/** A column and how a value of its type gets into it. */
type Extra = {
  readonly name: string
  readonly add: (value: ExtraValue) => void
  readonly column: (groups: Group[]) => Column
  readonly reset: () => void
}

/** The columns of `transform.extra_columns` under construction, in the order of their fields. */
export class ExtraColumns {
  private readonly extras: readonly Extra[]

  constructor(fields: readonly ExtraField[]) {
    this.extras = fields.map(extraColumn)
  }

  /** Adds a row: a value for each field, of the field's type. */
  add(values: readonly ExtraValue[]): void {
    for (let i = 0; i < this.extras.length; i++) this.extras[i]!.add(values[i] ?? null)
  }

  /** The column of this name; undefined when it is none of them. */
  column(name: string, groups: Group[]): Column | undefined {
    return this.extras.find((extra) => extra.name === name)?.column(groups)
  }

  reset(): void {
    for (const extra of this.extras) extra.reset()
  }
}

function extraColumn({ name, path, type }: ExtraField): Extra {
  switch (type) {
    case 'string':
    case 'json':
      // What identifies an item does not repeat; of the rest much does.
      return textExtra(name, path.length === 1 && type === 'string' ? plainColumn(null) : dictionaryColumn())
    case 'int64':
    case 'timestamp': {
      const list = new NumberList()
      return vectorExtra(name, list, (value) => list.add(value as Int64 | null))
    }
    case 'boolean': {
      const list = new BooleanList()
      return vectorExtra(name, list, (value) => list.add(value as boolean | null))
    }
    case 'strings': {
      const list = new ListList()
      return vectorExtra(name, list, (value) => list.add(value as readonly string[] | null))
    }
  }
}

function textExtra(name: string, column: TextColumn): Extra {
  return {
    name,
    add: (value) => (value === null ? column.addNull() : column.addText(value as string)),
    column: (groups) => column.column(name, groups),
    reset: () => column.reset(),
  }
}

function vectorExtra(
  name: string,
  list: { vector(): Vector; reset(): void },
  add: (value: ExtraValue) => void,
): Extra {
  return {
    name,
    add,
    column: () => ({ name, group: null, values: list.vector() }),
    reset: () => list.reset(),
  }
}
