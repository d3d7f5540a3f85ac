export { createDecoder, type Decoder } from './decoder.ts'
export { highWord, IdSet, lowWord } from './id-set.ts'
export { looksMasked, maskedQueryValue, REDACTED } from './mask/index.ts'
export { isKnownField } from './schema.ts'
