export { tableStatements } from './ddl.ts'
export { type LoadedAhead, type LoadOptions, type LoadSummary, loadWarehouse } from './load-warehouse.ts'
export { type Answer, type AnswerStream, type QuerySettings, queryPipeline, streamQuery } from './query.ts'
export { SealedLoader, type SealedLoaderOptions } from './sealed-loader.ts'
