export { parseExactJson } from './exact-json.ts'
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
export {
  type ItemWalker,
  itemWalker,
  type KnownSource,
  RECORD_SLOTS,
  type SourceExtras,
  STATUS,
} from './item-walker.ts'
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
