export { AnswerError, answerError } from './answer-error.ts'
export { jsonBody } from './json-body.ts'
export { serverTexts } from './server-text.ts'
