import { maxHeaderSize } from 'node:http'
import type { Socket } from 'node:net'
import { Agent, buildConnector, type Dispatcher, type ProxyAgent } from 'undici'
import { ADDRESS_ATTEMPT_MS } from '../core/index.ts'
import type { HttpProxy, ProxyOf } from './proxies.ts'
import { tunnelAgent } from './tunnel.ts'

const EMPTY = Buffer.alloc(0)

const MAX_HEAD = 4096

/** This cannot occur in JSON: its strings have no line breaks. */
const CONTINUE = /^HTTP\/1\.[01] 100(?: [^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n/

/** The same, incomplete. */
const BEGUN = /^HTTP\/1\.[01] 100(?: [^\r\n]*)?(?:\r(?:\n(?:[^\r\n]+\r\n)*[^\r\n]*\r?)?)?$/

/** The part of a dispatcher that is used here. */
export type Connections = {
  dispatch(
    options: Dispatcher.DispatchOptions & { origin: string },
    handler: Dispatcher.DispatchHandler,
  ): boolean
  /** Closes every connection, in use or not. */
  destroy(): Promise<void>
}

/**
 * Keep-alive connections, direct or through the proxy of a host.
 * @param options.proxyOf null: no host has one
 */
export function openConnections(options: {
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly proxyOf: ProxyOf | null
}): Connections {
  const { connections, proxyOf } = options
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = {
    timeout: options.connectTimeoutMs,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true,
  }
  const direct = new Agent({ connections, connect: withoutContinue(withReadBuffer(connect)) })
  if (proxyOf === null) return direct
  const tunnels = new Map<HttpProxy, ProxyAgent>()
  const tunnelOf = (proxy: HttpProxy): ProxyAgent => {
    const known = tunnels.get(proxy)
    if (known !== undefined) return known
    const made = tunnelAgent(proxy, { connections, connect, wrap: withoutContinue })
    tunnels.set(proxy, made)
    return made
  }
  return {
    dispatch(options, handler) {
      const proxy = proxyOf(options.origin)
      return (proxy === null ? direct : tunnelOf(proxy)).dispatch(options, handler)
    },
    async destroy() {
      await Promise.all([direct, ...tunnels.values()].map((agent) => agent.destroy()))
    },
  }
}

/**
 * Skips each `100 Continue` before a response: it has no meaning here (RFC 9110, 15.2.1), some proxies send it without
 * being requested to, and undici treats it as a broken response.
 */
function withoutContinue(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...result) => {
      const [error, socket] = result
      if (error !== null) return callback(error, null)
      const read = socket.read.bind(socket)
      let held: Buffer = EMPTY
      socket.read = (size?: number): Buffer | null => {
        const chunk = read(size) as Buffer | null
        if (chunk === null || (held.length === 0 && chunk[0] !== LETTER_H)) return chunk
        let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
        held = EMPTY
        for (let match = CONTINUE.exec(head(bytes)); match !== null; match = CONTINUE.exec(head(bytes))) {
          bytes = bytes.subarray(match[0].length)
        }
        if (BEGUN.test(head(bytes)) && bytes.length < MAX_HEAD) {
          // A chunk is valid during this call only.
          held = Buffer.from(bytes)
          return null
        }
        return bytes.length === 0 ? null : bytes
      }
      callback(null, socket)
    })
}

function head(bytes: Buffer): string {
  return bytes.toString('latin1', 0, MAX_HEAD)
}

/** A fast connection fills it, so that undici and its parser are called less often. */
const READ_BYTES = 256 * 1024

/** The first byte of `HTTP/1.1`, with which every head begins. */
const LETTER_H = 0x48

/** Whether a response begins with a head that is complete. Behind an interim response (1xx) there is another head. */
function isWholeHead(chunk: Buffer): boolean {
  return chunk[INTERIM_AT] !== DIGIT_1 && chunk.includes('\r\n\r\n')
}

/** Of the first digit of the status, behind `HTTP/1.1 `. */
const INTERIM_AT = 9
const DIGIT_1 = 0x31

/**
 * Connects as undici does, with one buffer for all reads of a connection (`onread` of `net` and `tls`). By default each
 * read gets memory of its own, and a page takes up to a hundred reads: V8 then marks its whole heap for every few pages.
 *
 * A chunk that `read` returns is valid until control returns to the event loop. undici parses it at once, with two
 * exceptions, which get copies: it reads the bytes of a head when the head is complete, and it returns by `unshift`
 * what it cannot process.
 */
function withReadBuffer(options: buildConnector.BuildOptions): buildConnector.connector {
  return (target, callback) => {
    let onRead = (_bytes: Uint8Array): boolean => true
    const onread = {
      buffer: new Uint8Array(READ_BYTES),
      callback: (length: number, buffer: Uint8Array): boolean => onRead(buffer.subarray(0, length)),
    }
    const connect = buildConnector({ ...options, onread } as buildConnector.BuildOptions)
    connect(target, (...result) => {
      const [error, socket] = result
      if (error !== null) return callback(error, null)
      onRead = readInto(socket)
      callback(null, socket)
    })
  }
}

/**
 * Makes `read` of a socket return the bytes that `onread` was called with.
 * @returns the function that `onread` calls; it returns false when the socket must pause
 */
function readInto(socket: Socket): (bytes: Uint8Array) => boolean {
  const read = socket.read.bind(socket)
  const unshift = socket.unshift.bind(socket)
  let waiting: Buffer | null = null
  /** The maximum length of a head. */
  let headBytes = 0

  socket.read = (size?: number): Buffer | null => {
    // Returned bytes come first. This also makes the socket continue to read after a pause.
    const chunk = read(size) as Buffer | null
    if (chunk !== null || size === 0) return chunk
    const next = waiting
    waiting = null
    return next
  }
  socket.unshift = (chunk: Uint8Array) => unshift(Buffer.from(chunk))

  return (bytes) => {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (chunk[0] === LETTER_H) headBytes = isWholeHead(chunk) ? 0 : maxHeaderSize
    const isOurs = waiting === null && headBytes <= 0
    headBytes -= chunk.length
    waiting = waiting === null ? (isOurs ? chunk : Buffer.from(chunk)) : Buffer.concat([waiting, chunk])
    socket.emit('readable')
    if (waiting === null) return true
    // undici has paused: the buffer must not change.
    if (isOurs) waiting = Buffer.from(waiting)
    return false
  }
}
