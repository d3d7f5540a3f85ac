export { diskStore } from './disk-store.ts'
export { requireWritable } from './storage-error.ts'
