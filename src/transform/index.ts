export { createDecoder, type Decoder } from './create-decoder.ts'
export { looksMasked } from './looks-masked.ts'
export { type MaskPolicies, REDACTED } from './mask.ts'
export { maskedQueryValue } from './query-value.ts'
