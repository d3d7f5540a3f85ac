export {
  type ExtractedPage,
  extractPages,
  type PageRequests,
  type PageStart,
  type ReadPage,
} from './extract-pages.ts'
export { fetchReport, type Report } from './fetch-report.ts'
export { type RunLimits, requestsLeft, searchesToSpend } from './pace/limits.ts'
export { PageSizes } from './pace/page-sizes.ts'
export { rateLimit } from './pace/rate-limit.ts'
export { NotServed } from './sending/failures.ts'
export { isWebPage, ResponseError, statusOf } from './sending/responses.ts'
export type { TokenInfo } from './sending/tokens.ts'
export { Service, type ServiceDeps, type ServiceLimits } from './service.ts'
