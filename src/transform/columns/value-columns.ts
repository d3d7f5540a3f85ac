import { type ExtraField, getOrInsert, type Int64 } from '../../core/index.ts'
import type { ColumnType } from '../../rows/index.ts'
import { BooleanList, type ColumnList, IndexList, NumberList } from './lists.ts'
import { addGroup, DictionaryColumn } from './text-columns.ts'
import { ListList, type TextColumn, TextList } from './text-list.ts'

/** The value of a column in a row; timestamps are microseconds. */
export type ColumnValue = string | boolean | Int64 | readonly string[] | null

export type ValueColumn = ColumnList & { add(value: ColumnValue): void }

/** @param repeats whether strings and numbers occur many times */
export function valueColumn(type: ColumnType | ExtraField['type'], repeats: boolean): ValueColumn {
  switch (type) {
    case 'text':
    case 'string':
    case 'json': {
      const texts: TextColumn = repeats ? new DictionaryColumn() : new TextList()
      return adding(texts, (value) => (value === null ? texts.addNull() : texts.addText(value as string)))
    }
    case 'int64':
    case 'timestamp': {
      const list = new NumberList()
      // JSON knows a negative zero; a column of integers does not.
      const add = (value: ColumnValue): void => list.add(value === 0 ? 0 : (value as Int64 | null))
      return repeats ? entryColumn(list, add) : adding(list, add)
    }
    case 'boolean': {
      const list = new BooleanList()
      return adding(list, (value) => list.add(value as boolean | null))
    }
    case 'list':
    case 'strings': {
      const list = new ListList()
      return adding(list, (value) => list.add(value as readonly string[] | null))
    }
  }
}

/** Has each value once. Of numbers the encoder makes a dictionary only if they come so. */
function entryColumn(list: NumberList, add: (value: ColumnValue) => void): ValueColumn {
  const entries = new Map<ColumnValue, number>()
  const indices = new IndexList()
  return {
    add(value) {
      const entry = getOrInsert(entries, value, () => entries.size)
      if (entry === list.length) add(value)
      indices.add(entry)
    },
    column(name, groups) {
      return { name, group: addGroup(groups, entries.size, indices.view()), values: list.vector() }
    },
    reset() {
      list.reset()
      entries.clear()
      indices.reset()
    },
  }
}

function adding(list: ColumnList, add: ValueColumn['add']): ValueColumn {
  return { add, column: (name, groups) => list.column(name, groups), reset: () => list.reset() }
}
