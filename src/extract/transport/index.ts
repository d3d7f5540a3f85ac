export {
  AnswerTimeout,
  type HttpAnswer,
  type HttpClient,
  httpClient,
  interrupted,
  isSuccess,
} from './http-client.ts'
export { UnreachableError } from './network-error.ts'
