import type { ServerResponse } from 'node:http'
import type { ServiceError } from '../search/service-error.ts'

/** A finished response; `body` is what goes over the wire, compressed already where it is. */
export type SandboxResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export function send(response: ServerResponse, content: SandboxResponse): void {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  response.end(content.body)
}

/** What is done to a request and its response by a program that serves the sandbox; by the command and the library, nothing. */
export type Interception = {
  /** For the log of requests. */
  readonly name: string
  /** The response instead of carrying the request out; null: it is carried out. */
  readonly instead: ServiceError | null
  readonly change: (content: SandboxResponse) => SandboxResponse
  /** Resolves when nothing more will be sent. @param closed aborts its waits */
  readonly send: (response: ServerResponse, content: SandboxResponse, closed: AbortSignal) => Promise<void>
}
