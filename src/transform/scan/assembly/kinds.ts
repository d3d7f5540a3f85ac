// Fields and kinds of values, as in item-fields.ts.

export const NULL: u8 = 1
export const TEXT: u8 = 2
export const ESCAPED_TEXT: u8 = 4
export const INTEGER: u8 = 8
export const LIST: u8 = 16
export const SOURCE_KIND: u8 = 32
export const ANY: u8 = 64

export const ID: usize = 0
export const DOMAIN: usize = 1
export const IDENTITY_NAME: usize = 2
export const HASH: usize = 3
export const HASH_TYPE: usize = 4
export const IMPORTED_AT: usize = 5
export const KNOWN_PASSWORD_ID: usize = 6
export const SOURCE_ID: usize = 7
export const SOURCE: usize = 8
export const AUTH_DOMAINS: usize = 9
export const URLS: usize = 10
export const CREDENTIAL_HASH: usize = 11
export const EVENT_UID: usize = 12
export const FIELD_COUNT: usize = 13
export const REQUIRED: u32 = (1 << 0) | (1 << 2) | (1 << 5) | (1 << 7)
