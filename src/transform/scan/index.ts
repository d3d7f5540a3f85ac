export {
  ANY_FIELDS,
  AUTH_DOMAINS,
  DOMAIN,
  HASH,
  HASH_TYPE,
  IDENTITY_NAME,
  IMPORTED_AT,
  KIND,
  KNOWN_PASSWORD_ID,
  SOURCE,
  SOURCE_ID,
  URLS,
} from './item-fields.ts'
export { ItemScanner } from './item-scanner.ts'
export {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  JsonScanner,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-scanner.ts'
export { type KnownSource, SourceCache, type SourceExtras } from './source-cache.ts'
export { TimestampReader } from './timestamp-reader.ts'
