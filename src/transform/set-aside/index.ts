export { ignoredFilter, invalidItem, pagePlace, wrongReport } from './item-errors.ts'
export {
  credentialQuarantine,
  issuePath,
  type Quarantine,
  refusedId,
  reportQuarantine,
} from './quarantine.ts'
