export { diskStore } from './disk-store.ts'
export { requireWritable } from './require-writable.ts'
