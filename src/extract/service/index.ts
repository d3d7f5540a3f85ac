export type { Pace } from './sender.ts'
export {
  openService,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
  type ServiceRequest,
} from './service.ts'
export type { RetryWait, Waits } from './waits.ts'
