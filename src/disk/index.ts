export { diskStore, probeFolder, requireWritable } from './disk-store.ts'
