import { type Encodings, ExportError, type Query } from '../../../core/index.ts'
import type { ColumnSpec, RecordBatch } from '../../../rows/index.ts'
import {
  eachEntry,
  integerColumn,
  type RecordBatchColumn,
  recordBatchColumns,
  totalRows,
  type VectorOf,
} from '../record-batch-column.ts'
import { booleanValues, type LeafValues, numberValues, stringMinMax, textValues } from './leaf-values.ts'
import { listItems, scratch, validRows } from './rows.ts'

/** Valid until `freeScratch`. */
export type Leaf = { readonly levels: Levels; readonly values: LeafValues }

/** Repetition and definition levels. An entry is a value, a null or an empty list. */
export type Levels = {
  readonly rows: number
  readonly maxRepetition: number
  readonly maxDefinition: number
  /** One level per entry; null: all are 0, so that each row is one entry. */
  readonly repetition: Uint8Array | null
  /** One level per entry; null: all are the maximum. */
  readonly definition: Uint8Array | null
}

/** Engines skip row groups by these. Others would copy identities and secrets into the footer and the journal. */
const STRINGS_WITH_MIN_MAX: ReadonlySet<string> = new Set([
  'domain',
  'source_id',
  'query_type',
  'query_value',
])

const SECRET_QUERY = Buffer.from('secret' satisfies Query['type'])

/** @throws ExportError `damaged` when a record batch lacks the column */
export function leafOf(spec: ColumnSpec, recordBatches: readonly RecordBatch[], encodings: Encodings): Leaf {
  switch (spec.type) {
    case 'int64':
    case 'timestamp': {
      const columns = recordBatches.map((recordBatch) => integerColumn(recordBatch, spec.name))
      return { levels: flatLevels(spec, columns), values: numberValues(columns, encodings) }
    }
    case 'boolean': {
      const columns = recordBatchColumns(recordBatches, spec.name, 'boolean')
      return { levels: flatLevels(spec, columns), values: booleanValues(columns) }
    }
    case 'text':
      return textLeaf(spec, recordBatches, encodings)
    case 'list':
      return listLeaf(spec, recordBatchColumns(recordBatches, spec.name, 'list'), encodings)
  }
}

function textLeaf(spec: ColumnSpec, recordBatches: readonly RecordBatch[], encodings: Encodings): Leaf {
  const columns = recordBatchColumns(recordBatches, spec.name, 'text')
  const values = textValues(columns, encodings)
  const minMax = hasMinMax(spec.name, recordBatches) ? stringMinMax(values.distinct) : null
  return { levels: flatLevels(spec, columns), values: { ...values, minMax } }
}

function hasMinMax(name: string, recordBatches: readonly RecordBatch[]): boolean {
  return STRINGS_WITH_MIN_MAX.has(name) && (name !== 'query_value' || recordBatches.every(hasNoSecretQuery))
}

/** Whether certainly no row comes from a secret query: the value of such a query may not be in the statistics. */
function hasNoSecretQuery({ columns }: RecordBatch): boolean {
  const values = columns.find(({ name }) => name === 'query_type')?.values
  if (values?.kind !== 'text') return false
  const { offsets, bytes } = values
  for (let i = 0; i + 1 < offsets.length; i++) {
    if (SECRET_QUERY.equals(bytes.subarray(offsets[i], offsets[i + 1]))) return false
  }
  return true
}

function flatLevels(spec: ColumnSpec, columns: readonly RecordBatchColumn[]): Levels {
  const definition = validityOf(spec, columns)
  const maxDefinition = spec.nullable ? 1 : 0
  return { rows: totalRows(columns), maxRepetition: 0, maxDefinition, repetition: null, definition }
}

function validityOf(spec: ColumnSpec, columns: readonly RecordBatchColumn[]): Uint8Array | null {
  const valid = validRows(columns)
  if (spec.nullable || valid === null) return valid
  const nulls = valid.reduce((sum, bit) => sum + 1 - bit, 0)
  if (nulls === 0) return null
  throw new ExportError({
    kind: 'data',
    what: `Column ${spec.name} may not be null, but is null in ${nulls} of ${valid.length} rows`,
    where: '',
    next: 'Please report this as a defect of Spillway.',
  })
}

/** Parquet's standard list of three levels: a list that may be null, of elements that may be null. */
function listLeaf(
  spec: ColumnSpec,
  columns: readonly RecordBatchColumn<VectorOf<'list'>>[],
  encodings: Encodings,
): Leaf {
  const items = columns.map(listItems)
  const { maxDefinition: base, ...levels } = flatLevels(spec, columns)
  const repetition = scratch(Uint8Array, levels.rows + totalRows(items))
  const definition = scratch(Uint8Array, repetition.length)
  let entry = 0
  for (const column of columns) {
    const { offsets, valid } = column.values
    const validItems = column.values.items.valid
    eachEntry(column, (list) => {
      const from = offsets[list]!
      const to = offsets[list + 1]!
      if (from === to) {
        repetition[entry] = 0
        definition[entry++] = valid === null || valid[list] === 1 ? base : 0
      }
      for (let item = from; item < to; item++) {
        repetition[entry] = item === from ? 0 : 1
        definition[entry++] = validItems === null || validItems[item] === 1 ? base + 2 : base + 1
      }
    })
  }
  return {
    levels: {
      ...levels,
      maxRepetition: 1,
      maxDefinition: base + 2,
      repetition: repetition.subarray(0, entry),
      definition: definition.subarray(0, entry),
    },
    values: textValues(items, encodings),
  }
}
