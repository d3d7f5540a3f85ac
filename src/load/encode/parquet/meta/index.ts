export { int64Extremes, numberExtremes, textExtremes, toldExtremes } from './extremes.ts'
export { MAGIC, parquetFooter } from './footer.ts'
export type { ColumnChunkMeta, RowGroupMeta } from './row-group-meta.ts'
