export { looksMasked } from './looks-masked.ts'
export { MASK_ROOM, type Mask, type MaskPolicies, type Masks, masksOf, maskText, REDACTED } from './mask.ts'
export { identityHider, maskedQueryValue } from './query-value.ts'
export { foldIdentity, Suppression, suppressionDigest } from './suppression.ts'
