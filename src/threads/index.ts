export { serve } from './serve.ts'
export { canStartThreads, openThread, owned, type Thread } from './thread.ts'
