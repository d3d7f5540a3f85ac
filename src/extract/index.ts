export {
  type ExtractedPage,
  extractPages,
  type PageRequests,
  type PageStart,
  type ReadPage,
} from './extract-pages.ts'
export { requestsLeft } from './pace/budget.ts'
export { PageSizes } from './pace/page-sizes.ts'
export { rateLimit } from './pace/rate-limit.ts'
export { fetchReport, type Report } from './reports.ts'
export { NotServed } from './sending/failures.ts'
export { isWebPage, ResponseError, statusOf } from './sending/responses.ts'
export type { TokenInfo } from './sending/tokens.ts'
export { type CallDeps, Service, type ServiceDeps, type ServiceLimits } from './service.ts'
