export { serve } from './serve.ts'
export { canStartThreads, openThread, type Thread } from './thread.ts'
