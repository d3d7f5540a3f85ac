import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import type { Environment } from '../../config/index.ts'

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Colours a text, or leaves it as it is where colours are not wanted. */
export type Style = (colour: Colour, text: string) => string

/** Whether a stream is a terminal that shows colours, to somebody who wants them (https://no-color.org). */
export function wantsColour(stream: Pick<WriteStream, 'isTTY' | 'hasColors'>, env: Environment): boolean {
  return stream.isTTY === true && !env.NO_COLOR && stream.hasColors(16, { ...env })
}

export function styleFor(colour: boolean): Style {
  // Whether the stream takes colours is decided already; styleText itself would ask stdout.
  return colour ? (name, text) => styleText(name, text, { validateStream: false }) : (_, text) => text
}
