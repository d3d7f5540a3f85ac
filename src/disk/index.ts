export { diskStore } from './disk-store.ts'
export { requireWritable, storageError } from './storage-error.ts'
