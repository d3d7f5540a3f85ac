export { openQueue, QUEUE_VARIABLE, type Queue } from './queue.ts'
export { followSubmission, type Submission, submitPipeline } from './submit.ts'
export type { RunWatcher } from './time-slice.ts'
export { work } from './worker.ts'
