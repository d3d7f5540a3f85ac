export { AnswerError } from './answers/index.ts'
export type { TokenInfo } from './credentials/index.ts'
export {
  type Ahead,
  ChainSize,
  PageSizes,
  placesAhead,
  type RateLimit,
  rateLimit,
  type SizeChange,
} from './pace/index.ts'
export {
  type Chain,
  type ExtractedPage,
  extractPages,
  fetchReport,
  type Report,
  type Sizing,
} from './paging/index.ts'
export {
  openService,
  PageTooLarge,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
} from './service/index.ts'
export { UnreachableError } from './transport/index.ts'
