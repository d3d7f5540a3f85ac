export { namingLocations, pathIn, withLocation } from './locations.ts'
export { namePipeline } from './named-pipeline.ts'
export {
  type LogFields,
  type LogLevel,
  type OpeningStep,
  type Progress,
  type RetryWait,
  type RunObserver,
  type RunWaits,
  silentObserver,
} from './observer.ts'
export type { RunOptions } from './options.ts'
export { type QuerySecrets, readQuerySecrets, requireSendableToken } from './query-secrets.ts'
