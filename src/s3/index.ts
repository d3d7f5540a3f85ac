/** Data sets in S3-compatible object storage. */
export { s3Store } from './s3-store.ts'
export { requireState, splitStore } from './split-store.ts'
