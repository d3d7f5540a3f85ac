import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultEffect } from './faults.ts'

/** A finished response; `body` is what goes over the wire, compressed already where it is. */
export type SandboxResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Sends a response unchanged. */
export function send(response: ServerResponse, content: SandboxResponse): void {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  response.end(content.body)
}

/**
 * Sends a response in one of the ways in which networks and proxies break it. The connection is never
 * used again. Resolves when nothing more will be sent.
 */
export async function sendBroken(
  response: ServerResponse,
  content: SandboxResponse,
  fault: FaultEffect,
  closed: AbortSignal,
): Promise<void> {
  const socket = response.socket
  if (!socket) return
  const half = content.body.subarray(0, Math.floor(content.body.length / 2))
  switch (fault.kind) {
    case 'reset':
      socket.resetAndDestroy()
      return
    case 'hang':
      return
    case 'reset-mid-body':
      await writeHalf(response, content, half)
      // Some time on the wire: a reset throws away what the other side has not read.
      await sleep(20, undefined, { signal: closed }).catch(() => {})
      socket.resetAndDestroy()
      return
    case 'truncate':
      await writeHalf(response, content, half)
      socket.end()
      return
    case 'stall':
      await writeHalf(response, content, half)
      return
    case 'wrong-content-length':
      // Written by hand, because Node's server refuses to send what contradicts its own header.
      socket.write(head(content, Math.max(0, content.body.length + (fault.by ?? -1))))
      socket.end(content.body)
      return
    case 'drip':
      await drip(response, content, fault.bytes ?? 64, fault.everyMs ?? 20, closed)
      return
    default:
      send(response, content)
  }
}

async function writeHalf(response: ServerResponse, content: SandboxResponse, half: Buffer): Promise<void> {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.write(half, () => resolve())
  })
}

async function drip(
  response: ServerResponse,
  content: SandboxResponse,
  bytes: number,
  everyMs: number,
  closed: AbortSignal,
): Promise<void> {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  for (let at = 0; at < content.body.length && !response.destroyed && !closed.aborted; at += bytes) {
    response.write(content.body.subarray(at, at + bytes))
    await sleep(everyMs, undefined, { signal: closed }).catch(() => {})
  }
  response.end()
}

function head(content: SandboxResponse, contentLength: number): string {
  const headers = { ...content.headers, 'content-length': String(contentLength), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${content.status} OK\r\n${lines.join('')}\r\n`
}
