export { valueColumn } from './columns/value-columns.ts'
export { createDecoder, type Decoder } from './decoder.ts'
export {
  filedIdentity,
  IGNORABLE,
  identityHider,
  looksMasked,
  maskedQueryValue,
  normalIdentity,
  REDACTED,
  suppressionDigest,
  withoutEnd,
} from './mask/index.ts'
export { isKnownField, UNNAMED_FIELDS } from './schema.ts'
