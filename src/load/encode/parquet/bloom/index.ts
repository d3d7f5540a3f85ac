export { bloomFilter } from './bloom-filter.ts'
