export { AnswerError } from './answers/index.ts'
export type { TokenInfo } from './credentials/index.ts'
export {
  type Ahead,
  InTurn,
  MARGIN,
  placesAhead,
  type RateLimit,
  rateLimit,
  sleepUntil,
  type Turn,
  WIDER,
  WIDEST,
} from './pace/index.ts'
export { type Chain, type ExtractedPage, extractPages, fetchReport, type Report } from './paging/index.ts'
export {
  openService,
  type Pace,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
} from './service/index.ts'
