export { jsonBody } from './json-body.ts'
export { ResponseError, responseError } from './response-error.ts'
export { serverTexts } from './server-text.ts'
