export { createDecoder, type Decoder } from './create-decoder.ts'
export { highWord, IdSet, lowWord } from './id-set.ts'
export { looksMasked, type MaskPolicies, maskedQueryValue, REDACTED } from './mask/index.ts'
