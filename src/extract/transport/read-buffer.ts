import { maxHeaderSize } from 'node:http'
import type { Socket } from 'node:net'
import { buildConnector } from 'undici'

/** As much as the system hands over at once on a fast connection. */
const READ_BYTES = 64 * 1024

/** The first byte of `HTTP/1.1`, with which every head begins. */
const LETTER_H = 0x48

/**
 * Connects as undici does, with one buffer for all reads of a connection (`onread` of `net` and `tls`). By default each
 * read gets memory of its own, and a page takes a hundred reads: V8 then marks its whole heap for every few pages.
 *
 * A chunk that `read` gives is good until control goes back to the event loop. undici parses it at once, with two
 * exceptions, which get copies: it looks at the bytes of a head when the head is complete, and it gives back what it can
 * not take by `unshift`.
 */
export function withReadBuffer(options: buildConnector.BuildOptions): buildConnector.connector {
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

/** Has `read` of a socket give what `onread` was called with. @returns what `onread` is to call; false: read no more for now */
function readInto(socket: Socket): (bytes: Uint8Array) => boolean {
  const read = socket.read.bind(socket)
  const unshift = socket.unshift.bind(socket)
  let waiting: Buffer | null = null
  /** So many bytes may belong to a head. */
  let headBytes = 0

  socket.read = (size?: number): Buffer | null => {
    // What was given back comes first. This also makes the socket read on after a pause.
    const chunk = read(size) as Buffer | null
    if (chunk !== null || size === 0) return chunk
    const next = waiting
    waiting = null
    return next
  }
  socket.unshift = (chunk: Uint8Array) => unshift(Buffer.from(chunk))

  return (bytes) => {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (chunk[0] === LETTER_H) headBytes = maxHeaderSize
    const isOurs = waiting === null && headBytes <= 0
    headBytes -= chunk.length
    waiting = waiting === null ? (isOurs ? chunk : Buffer.from(chunk)) : Buffer.concat([waiting, chunk])
    socket.emit('readable')
    if (waiting === null) return true
    // undici has paused: nothing may come into the buffer.
    if (isOurs) waiting = Buffer.from(waiting)
    return false
  }
}
