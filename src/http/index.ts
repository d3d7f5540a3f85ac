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
export { clientCredentials } from './json/client-credentials.ts'
export { type JsonRequest, JsonRequests, type JsonResponse, jsonBody } from './json/json-requests.ts'
export {
  always,
  givenToken,
  headerText,
  newToken,
  type Token,
  type TokenSource,
  tokenSource,
} from './json/tokens.ts'
export { UnreachableError } from './network-error.ts'
export { proxyAgents } from './proxy-agents.ts'
export { backoffMs, retry, retryAfterMs } from './retry.ts'
export { serverTexts } from './server-texts.ts'
