export { valueColumn } from './columns/value-columns.ts'
export { createDecoder, type Decoder } from './decoder.ts'
export {
  filedIdentity,
  identityDigest,
  identityHider,
  looksMasked,
  maskedQueryValue,
  suppressionDigest,
} from './mask/mask.ts'
export { IGNORABLE, normalIdentity, withoutEnd } from './mask/normal-form.ts'
