export type { TokenInfo } from './credentials/index.ts'
export {
  ChainSize,
  PageSizes,
  type Prefetch,
  prefetchSlots,
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
export { ResponseError } from './responses/index.ts'
export {
  openService,
  PageTooLarge,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
} from './service/index.ts'
export { UnreachableError } from './transport/index.ts'
