import type { buildConnector } from 'undici'

/**
 * Passes over each `100 Continue` that comes before an answer: it means nothing (RFC 9110,
 * 15.2.1), some proxies send it unasked, and undici takes it for a broken answer.
 */
export function withoutContinue(connect: buildConnector.connector): buildConnector.connector {
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
          // A chunk is not good for longer than this call.
          held = Buffer.from(bytes)
          return null
        }
        return bytes.length === 0 ? null : bytes
      }
      callback(null, socket)
    })
}

const EMPTY = Buffer.alloc(0)
const LETTER_H = 0x48
const MAX_HEAD = 4096
/** Nothing in JSON reads like this: its texts have no line breaks. */
const CONTINUE = /^HTTP\/1\.[01] 100(?: [^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n/
/** The same, not yet whole. */
const BEGUN = /^HTTP\/1\.[01] 100(?: [^\r\n]*)?(?:\r(?:\n(?:[^\r\n]+\r\n)*[^\r\n]*\r?)?)?$/

function head(bytes: Buffer): string {
  return bytes.toString('latin1', 0, MAX_HEAD)
}
