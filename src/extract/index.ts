export {
  type Chain,
  type ExtractedPage,
  extractPages,
  type Prefetch,
  prefetchSlots,
  type Sizing,
} from './extract-pages.ts'
export { fetchReport, type Report } from './fetch-report.ts'
export { ChainSize, PageSizes, type SizeChange } from './pace/page-sizes.ts'
export { type RateLimit, rateLimit } from './pace/rate-limit.ts'
export { ResponseError } from './responses.ts'
export { PageTooLarge } from './sender.ts'
export { openService, type Service, type ServiceDeps, type ServiceLimits } from './service.ts'
export type { TokenInfo } from './tokens.ts'
export { UnreachableError } from './transport/network-error.ts'
