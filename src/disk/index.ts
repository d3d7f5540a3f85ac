export { type DiskOptions, diskStore } from './disk-store.ts'
export { storageError } from './storage-error.ts'
export { requireWritable } from './writable.ts'
