export { canStartThreads, openThread, owned, serve, type Thread } from './thread.ts'
