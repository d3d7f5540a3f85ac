export {
  CREDENTIAL_FIELDS,
  type Credential,
  parseCredential,
  SOURCE_FIELDS,
  type Source,
  sourceSchema,
} from './credential.ts'
export { REPORT_FIELDS, type Report, reportSchema } from './report.ts'
export { integer, timestamp } from './schema-parts.ts'
export { fieldName, UnknownFields, unknownNames } from './unknown-fields.ts'
