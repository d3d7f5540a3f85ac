export { bucketStore } from './bucket-store.ts'
export {
  type Condition,
  Conflict,
  contentType,
  type Driver,
  inParts,
  type Listed,
  type Upload,
  unfit,
  type Write,
} from './driver.ts'
export {
  AGAIN,
  type Cause,
  CLOCK,
  causeOf,
  loadSdk,
  plainHttp,
  STORE_ATTEMPTS,
  type StoreErrors,
} from './store-error.ts'
