import { type ColumnType, type Format, TYPE_NAMES } from '../../core/index.ts'

/** A column type's name in `_manifest.json`, as the engine stores it: parquetjs-lite knows milliseconds only. */
export function storedTypeName(type: ColumnType, format: Format): string {
  return type === 'timestamp' && format.engine === 'parquetjs-lite'
    ? 'TIMESTAMP(MILLIS, UTC)'
    : TYPE_NAMES[type]
}
