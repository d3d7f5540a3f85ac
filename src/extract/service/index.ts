export { PageTooLarge } from './sender.ts'
export {
  openService,
  type ResponseFacts,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
  type ServiceRequest,
} from './service.ts'
export type { RetryWait, Waits } from './waits.ts'
