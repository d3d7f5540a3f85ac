export { clientCredentials } from './client-credentials.ts'
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
export { jsonBody } from './json-body.ts'
export { type JsonRequest, JsonRequests, type JsonResponse } from './json-requests.ts'
export { UnreachableError } from './network-error.ts'
export { proxyAgents } from './proxy-agents.ts'
export { retry } from './retry.ts'
export { backoffMs, retryAfterMs } from './retry-waits.ts'
export { serverTexts } from './server-texts.ts'
export {
  always,
  givenToken,
  headerText,
  newToken,
  type Token,
  type TokenSource,
  tokenSource,
} from './tokens.ts'
