export {
  openService,
  type Service,
  type ServiceDeps,
  type ServiceLimits,
  type ServiceRequest,
} from './service.ts'
