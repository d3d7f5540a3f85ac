export {
  type HttpClient,
  type HttpResponse,
  httpClient,
  interrupted,
  isSuccess,
  ResponseTimeout,
} from './http-client.ts'
export { UnreachableError } from './network-error.ts'
