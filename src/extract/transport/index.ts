export { type HttpAnswer, type HttpClient, httpClient, interrupted, isSuccess } from './http-client.ts'
