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
export { IGNORABLE, normalIdentity, withoutEnd } from './normal-form.ts'
export { filedIdentity, Suppression, suppressionDigest } from './suppression.ts'
