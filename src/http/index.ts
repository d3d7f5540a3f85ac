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
export { jsonBody } from './json/json-body.ts'
export { type JsonRequest, JsonRequests, type JsonResponse } from './json/json-requests.ts'
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
export { proxyAgents } from './proxies/proxy-agents.ts'
export { retry } from './retry.ts'
export { backoffMs, retryAfterMs } from './retry-waits.ts'
export { serverTexts } from './server-texts.ts'
