export { diskStore, requireWritable } from './disk-store.ts'
