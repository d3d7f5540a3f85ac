export { createDecoder, type Decoder } from './create-decoder.ts'
export { looksMasked, type MaskPolicies, maskedQueryValue, REDACTED } from './mask/index.ts'
