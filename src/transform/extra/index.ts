export { type ExtraIssue, ExtraReader } from './extra-reader.ts'
export { itemStarts } from './item-starts.ts'
