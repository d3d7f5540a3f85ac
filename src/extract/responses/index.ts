export { jsonBody, serverTexts } from './response-body.ts'
export { ResponseError, responseError } from './response-error.ts'
