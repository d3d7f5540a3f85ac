import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { portOf } from '../../support/listening.ts'

export type Gateway = {
  /** To be used instead of the store's. */
  readonly endpoint: string
  /** Requests that the store has carried out, and whose response was lost. */
  readonly lost: readonly string[]
}

/** What happens to a request instead of being passed on; null: nothing. */
export type Refuse = (request: IncomingMessage) => ((response: ServerResponse) => void) | null

/** Stands between a store and its client until the test ends. */
export async function gatewayTo(
  store: string,
  {
    losesFirst = false,
    refuse = () => null,
  }: {
    /** Closes the connection once the store has responded to a request that it had not seen. */
    readonly losesFirst?: boolean
    readonly refuse?: Refuse
  },
): Promise<Gateway> {
  const { port: behind, pathname } = new URL(store)
  const lost: string[] = []
  const server = createServer((request, response) => {
    const refusal = refuse(request)
    if (refusal !== null) {
      request.resume().on('end', () => refusal(response))
      return
    }
    const { method, headers, url = '' } = request
    const passed = send({ port: behind, method, headers, path: url }, (answer) => {
      const name = `${method} ${url}`
      if (losesFirst && !lost.includes(name)) {
        lost.push(name)
        answer.resume().on('end', () => response.destroy())
        return
      }
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  const port = await portOf(server)
  return { endpoint: `http://127.0.0.1:${port}${pathname === '/' ? '' : pathname}`, lost }
}
