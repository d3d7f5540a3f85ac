import zlib from 'node:zlib'
import type { Compressors } from 'hyparquet'
import { ExportError } from '../../core/index.ts'

/** Decompression by Node.js; hyparquet brings its own for Snappy. */
export const decompressors: Compressors = {
  GZIP: (input, outputLength) => zlib.gunzipSync(input, limit(outputLength)),
  ZSTD: (input, outputLength) => zstdDecompress()(input, limit(outputLength)),
}

/** A page never grows beyond what its header says. */
function limit(outputLength: number): { maxOutputLength: number } {
  return { maxOutputLength: Math.max(1, outputLength) }
}

type ZstdDecompress = (input: Uint8Array, options: { maxOutputLength: number }) => Uint8Array

function zstdDecompress(): ZstdDecompress {
  const decompress: unknown = Reflect.get(zlib, 'zstdDecompressSync')
  if (isZstdDecompress(decompress)) return decompress
  throw new ExportError(
    'config',
    `Node.js ${process.versions.node} cannot read zstd`,
    'load.compression',
    'Use Node.js 22.15 or later.',
  )
}

function isZstdDecompress(value: unknown): value is ZstdDecompress {
  return typeof value === 'function'
}
