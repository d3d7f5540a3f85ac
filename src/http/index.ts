export {
  type HttpClient,
  type HttpRequest,
  type HttpResponse,
  httpClient,
  interrupted,
  isSuccess,
  type RequestSignals,
  ResponseTimeout,
} from './http-client.ts'
export {
  clientCredentials,
  type JsonRequest,
  type JsonRequests,
  type JsonResponse,
  jsonBody,
  jsonRequests,
  serverTexts,
} from './json-requests.ts'
export { UnreachableError } from './network-error.ts'
export { proxyAgents } from './proxies.ts'
export { backoffMs, retry, retryAfterMs } from './retry.ts'
export { givenToken, headerText, newToken, type Token, type TokenSource, tokenSource } from './tokens.ts'
