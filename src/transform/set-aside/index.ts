export { ignoredFilter, pagePlace, wrongReport } from './item-errors.ts'
export {
  credentialQuarantine,
  type Quarantine,
  refusedId,
  refusedTime,
  reportQuarantine,
} from './quarantine.ts'
