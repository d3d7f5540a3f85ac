export { MAGIC, parquetFooter } from './footer.ts'
export { int64MinMax, minMaxAsJson, numberMinMax, stringMinMax } from './min-max.ts'
export type { ColumnChunkMeta, RowGroupMeta } from './row-group-meta.ts'
