export {
  identityHider,
  looksMasked,
  MASK_ROOM,
  type Mask,
  type Masks,
  maskedQueryValue,
  masksOf,
  maskText,
  REDACTED,
} from './mask.ts'
export { foldIdentity, Suppression, suppressionDigest } from './suppression.ts'
