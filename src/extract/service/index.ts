export { PageTooLarge } from './sender.ts'
export {
  type AnswerFacts,
  openService,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
  type ServiceRequest,
} from './service.ts'
export type { RetryWait, Waits } from './waits.ts'
